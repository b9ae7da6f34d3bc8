import * as v from 'valibot';
import { asModelId } from '../../lib/model-id.ts';
import { CONFIDENCES, MOST_ORDERS } from '../../lib/schema/question-fields.ts';
import { REQUESTED_PRECISIONS } from '../../runtime/compile/choose-precision.ts';
import { DEVICE_CHOICES } from '../../runtime/device/device-table.ts';
import { LONG_INPUTS } from '../../runtime/registry/hosted-model.ts';
import { DTYPES } from '../../runtime/store/dtypes.ts';
import { homeFolder } from '../../runtime/store/environment.ts';
import { expandHome } from '../../runtime/store/paths.ts';
import { ISOLATION_MODES } from '../../runtime/supervisor/isolation/isolation.ts';
import { METRICS_NAMES } from '../../runtime/supervisor/metrics.ts';
import { apiKeyOf, KEY_HELP, type KeyFlags } from './api-key.ts';
import { UsageError } from './usage-error.ts';

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Origins of apps and extensions, whose schemes URL does not know: `app://obsidian.md`, `vscode-webview://id`. */
const APP_ORIGIN = /^(?!https?:|file:)[a-z][a-z0-9+.-]*:\/\/[a-zA-Z0-9._-]+(?::\d{1,5})?$/;

const Origin = v.pipe(
  v.string(),
  v.check(
    (text) => (URL.canParse(text) && new URL(text).origin === text) || APP_ORIGIN.test(text),
    'must be an origin, such as http://localhost:3000 or app://obsidian.md',
  ),
);

const Alias = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,256}$/, 'must be names of 1 to 256 visible ASCII characters'));

const MediaHost = v.pipe(
  v.string(),
  v.regex(
    /^(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$/,
    'must be a host name, such as images.example.com or *.example.com',
  ),
);

/** Largest value of `--chat-max-tokens`, in tokens; equals the bound of `max_tokens` in a chat request. */
const MOST_TOKENS = 1_048_576;
const WHOLE_TOKENS = `must be a whole number, 1 to ${MOST_TOKENS}`;

/** Bytes of each unit of memory; without a B, as in Docker, 1G is 1 GiB. */
const UNITS: Readonly<Record<string, number>> = {
  M: 2 ** 20,
  MB: 1e6,
  MIB: 2 ** 20,
  G: 2 ** 30,
  GB: 1e9,
  GIB: 2 ** 30,
};

/** Returns the schema of a number of seconds, 0 to an hour, as text. */
const seconds = () =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,4}$/, 'must be a whole number of seconds, 0 to 3600'),
    v.transform(Number),
    v.maxValue(3600, 'must be a whole number of seconds, 0 to 3600'),
  );

/** Returns the schema of a number of bytes as text, such as 8GB. */
const size = () =>
  v.pipe(
    v.string(),
    v.regex(/^(?!0)\d{1,6}(\.\d{1,3})?\s?(M|G)(i?B)?$/i, 'must be a size, such as 8GB or 512MiB'),
    v.transform((text) => Number.parseFloat(text) * UNITS[text.replace(/^[\d.\s]+/, '').toUpperCase()]!),
  );

/** Describes the server's configuration. Flags override environment variables, which override the defaults. */
export const ServerConfig = v.object({
  /** Address to listen on. */
  host: v.pipe(
    v.string(),
    // An IPv6 address is often written in brackets, as in a URL: [::1].
    v.transform((text) => text.replace(/^\[(.*)\]$/, '$1')),
    v.nonEmpty('must be an address or a host name'),
  ),
  /** Port to listen on; 0 for any free port. */
  port: v.pipe(
    v.string(),
    v.regex(/^\d{1,5}$/, 'must be 0 to 65535'),
    v.transform(Number),
    v.maxValue(65535, 'must be 0 to 65535'),
  ),
  /** Absolute path of the folder with models, keys and compiled files. */
  home: v.string(),
  /** API key that the server accepts besides those in the home folder; absent: none. */
  apiKey: v.optional(v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,256}$/, 'must be 1 to 256 visible ASCII characters'))),
  /** Models to load at start, which then stay in memory beside each other. */
  model: v.pipe(
    v.array(
      v.pipe(
        v.string(),
        v.rawTransform(({ dataset, addIssue, NEVER }) => {
          const id = asModelId(dataset.value);
          if (id) return id;
          addIssue({ message: 'must be <namespace>/<name>, such as assay/starter' });
          return NEVER;
        }),
      ),
    ),
    v.nonEmpty('must be <namespace>/<name>, such as assay/starter'),
    v.maxLength(64, 'may be at most 64 models'),
  ),
  /** Bytes that the models in memory may need together; absent: a share of the machine's memory. */
  memory: v.optional(size()),
  /** True to unload the models that were used least recently if another one does not fit. */
  evict: v.boolean(),
  /** True to load a model of this machine when the first request for it arrives. */
  loadOnDemand: v.boolean(),
  /** Device that runs the model; `auto`: Assay chooses the best one. */
  device: v.picklist(DEVICE_CHOICES, `must be one of ${DEVICE_CHOICES.join(', ')}`),
  /** Number format of the weights to download; if absent, the best one for the device. */
  dtype: v.optional(v.picklist(DTYPES, `must be one of ${DTYPES.join(', ')}`)),
  /** Number format of compiled weights; `auto`: the fastest that is accurate on this machine. */
  precision: v.picklist(REQUESTED_PRECISIONS, `must be one of ${REQUESTED_PRECISIONS.join(', ')}`),
  /** Token limit of a chat answer if the request sets none. */
  chatMaxTokens: v.pipe(
    v.string(),
    v.regex(/^[1-9]\d{0,6}$/, WHOLE_TOKENS),
    v.transform(Number),
    v.maxValue(MOST_TOKENS, WHOLE_TOKENS),
  ),
  /** Default number of orders, 1 to 8, in which questions with probabilities show their options. */
  orders: v.pipe(v.string(), v.regex(/^[1-8]$/, `must be a whole number, 1 to ${MOST_ORDERS}`), v.transform(Number)),
  /** Default of `abstain_below`, 0 to 1: the server abstains from a choice whose likeliest option is less probable. */
  abstainBelow: v.pipe(
    v.string(),
    v.regex(/^(0|1|0?\.\d{1,9}|1\.0*)$/, 'must be a number from 0 to 1'),
    v.transform(Number),
  ),
  /** Model or server that questions are asked again if their likeliest option is less probable than `escalateBelow`. */
  escalate: v.optional(
    v.pipe(
      v.string(),
      v.check(
        (text) => asModelId(text) !== null || (/^https?:/.test(text) && URL.canParse(text)),
        'must be the id of a model of this server, or the address of a server with /v1/systemone',
      ),
    ),
  ),
  /** Probability, 0 to 1, below which a question is asked again. */
  escalateBelow: v.pipe(
    v.string(),
    v.regex(/^(0|1|0?\.\d{1,9}|1\.0*)$/, 'must be a number from 0 to 1'),
    v.transform(Number),
  ),
  /** True to keep the confidence of answers by the names of questions in the metrics. */
  metricsQuestions: v.boolean(),
  /** Formula for the confidence of an answer (`lib/questions/distribution.ts`); if absent, that of the format. */
  confidence: v.optional(v.picklist(CONFIDENCES, `must be one of ${CONFIDENCES.join(', ')}`)),
  /** Says what to do with a text that an encoder model cannot read whole: refuse it, or read it in windows. */
  longInput: v.picklist(LONG_INPUTS, `must be one of ${LONG_INPUTS.join(', ')}`),
  /** Isolation of the processes that run models from the rest of the machine. */
  isolation: v.picklist(ISOLATION_MODES, `must be one of ${ISOLATION_MODES.join(', ')}`),
  /**
   * Seconds after SIGTERM in which the server still takes requests, but reports that it is not ready. Absent: 5 if
   * something has asked for its readiness, otherwise 0.
   */
  shutdownDelay: v.optional(seconds()),
  /** Seconds that running requests have to finish once the server takes no more. */
  drainSeconds: seconds(),
  /** Names of the metrics; `vllm` adds those that routers of models read. */
  metricsNames: v.picklist(METRICS_NAMES, `must be one of ${METRICS_NAMES.join(', ')}`),
  /** Port that answers `GET /metrics`, without a key, and nothing else; 0 for any free port, absent: none. */
  metricsPort: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,5}$/, 'must be 0 to 65535'),
      v.transform(Number),
      v.maxValue(65535, 'must be 0 to 65535'),
    ),
  ),
  /** Address of that port; absent: `host`. */
  metricsHost: v.optional(v.pipe(v.string(), v.nonEmpty('must be an address or a host name'))),
  /** Absolute path of the folder in which cached prefixes outlive the server; absent: they end with it. */
  cacheDir: v.optional(v.string()),
  /** Bytes of the saved prefixes of a model. */
  cacheSize: size(),
  /** True to keep files and batches of requests in the home folder, and to answer them in the background. */
  batches: v.boolean(),
  /** False with `--no-load`: no model is loaded at start. */
  load: v.boolean(),
  /** Names by which requests may call the loaded model, besides its id. */
  alias: v.array(Alias),
  /** Origins of web pages, besides those of the server itself, that may call it. */
  allowOrigin: v.array(Origin),
  /** Hosts from which images may be fetched; `*.example.com` stands for all hosts below `example.com`. */
  allowMediaHost: v.array(MediaHost),
});
export type ServerConfig = v.InferOutput<typeof ServerConfig>;

/** Describes a flag of `assay serve`: everything about it, but for the schema of its value in `ServerConfig`. */
interface Flag {
  /** The flag as its help shows it, such as `--port <number>`. */
  flag: string;
  help: string;
  /** Environment variable that holds the value if the flag is not given. */
  env?: string;
  /** Value if neither is given. */
  default?: string;
  choices?: readonly string[];
}

/** The flags of `assay serve` in the order of its help, except `--log-level` and `--api-key-file`. */
export const SERVER_FLAGS: Readonly<Record<keyof ServerConfig, Flag>> = {
  host: {
    flag: '--host <address>',
    default: '127.0.0.1',
    help: 'address to listen on; any other than loopback requires an API key',
  },
  port: { flag: '--port <number>', env: 'PORT', default: '8080', help: 'port to listen on, 0 for any free one' },
  home: { flag: '--home <folder>', env: 'ASSAY_HOME', default: '~/.assay', help: 'folder with models and keys' },
  apiKey: {
    flag: '--api-key <key>',
    env: 'ASSAY_API_KEY',
    help: `key to accept besides those in the home folder; ${KEY_HELP.visible}`,
  },
  model: {
    flag: '--model <id...>',
    env: 'ASSAY_MODEL',
    default: 'assay/starter',
    help: 'models to load at start; several stay in memory beside each other',
  },
  memory: {
    flag: '--memory <size>',
    env: 'ASSAY_MEMORY',
    help: 'memory for models, such as 8GB: loaded models then stay beside each other as long as they fit (default for several models: 80% of the machine)',
  },
  evict: {
    flag: '--evict',
    env: 'ASSAY_EVICT',
    help: 'if a model does not fit, unload those that were used least recently (1 in the variable)',
  },
  loadOnDemand: {
    flag: '--load-on-demand',
    env: 'ASSAY_LOAD_ON_DEMAND',
    help: 'load a model of this machine when the first request for it arrives, and honour keep_alive (1 in the variable)',
  },
  device: {
    flag: '--device <device>',
    env: 'ASSAY_DEVICE',
    default: 'auto',
    choices: DEVICE_CHOICES,
    help: 'device that runs the model; assay doctor shows which work',
  },
  dtype: {
    flag: '--dtype <format>',
    env: 'ASSAY_DTYPE',
    choices: DTYPES,
    help: 'number format of downloaded weights',
  },
  precision: {
    flag: '--precision <name>',
    env: 'ASSAY_PRECISION',
    default: 'auto',
    choices: REQUESTED_PRECISIONS,
    help: 'precision to compile',
  },
  chatMaxTokens: {
    flag: '--chat-max-tokens <number>',
    env: 'ASSAY_CHAT_MAX_TOKENS',
    default: '1024',
    help: 'most tokens of a chat answer if the request sets no max_tokens',
  },
  orders: {
    flag: '--orders <number>',
    env: 'ASSAY_ORDERS',
    default: '1',
    help: 'orders in which questions with probabilities show their options, 1 to 8',
  },
  abstainBelow: {
    flag: '--abstain-below <probability>',
    env: 'ASSAY_ABSTAIN_BELOW',
    default: '0',
    help: 'abstain from a choice whose most probable option is below this, 0 to 1',
  },
  escalate: {
    flag: '--escalate <model|url>',
    env: 'ASSAY_ESCALATE',
    help: 'ask uncertain questions again: a model of this server, or a server with /v1/systemone (its key: ASSAY_ESCALATE_KEY)',
  },
  escalateBelow: {
    flag: '--escalate-below <probability>',
    env: 'ASSAY_ESCALATE_BELOW',
    default: '0.8',
    help: 'with --escalate, ask again if the most probable option is below this, 0 to 1',
  },
  metricsQuestions: {
    flag: '--metrics-questions',
    env: 'ASSAY_METRICS_QUESTIONS',
    help: 'keep histograms of the confidence by the names of questions, at most 64, in /metrics (1 in the variable)',
  },
  confidence: {
    flag: '--confidence <formula>',
    env: 'ASSAY_CONFIDENCE',
    choices: CONFIDENCES,
    help: 'formula for the confidence of an answer (default: margin for System One, else entropy)',
  },
  longInput: {
    flag: '--long-input <mode>',
    env: 'ASSAY_LONG_INPUT',
    default: 'refuse',
    choices: LONG_INPUTS,
    help: 'refuse: a text that an encoder model cannot read whole is an error; windows: it is read in parts, where the model family defines that',
  },
  isolation: {
    flag: '--isolation <mode>',
    env: 'ASSAY_ISOLATION',
    default: 'auto',
    choices: ISOLATION_MODES,
    help: 'auto: every isolation layer that the system supports (see assay doctor); strict: all layers, or the server does not start; off',
  },
  alias: {
    flag: '--alias <name...>',
    env: 'ASSAY_ALIAS',
    help: 'other names for the loaded model, such as gpt-4o-mini',
  },
  shutdownDelay: {
    flag: '--shutdown-delay <seconds>',
    env: 'ASSAY_SHUTDOWN_DELAY',
    help: 'after SIGTERM, still take requests for this time but report not ready (default: 5 if something asks /health/ready, else 0)',
  },
  drainSeconds: {
    flag: '--drain-seconds <seconds>',
    env: 'ASSAY_DRAIN_SECONDS',
    default: '10',
    help: 'time for running requests to finish before the server ends',
  },
  metricsPort: {
    flag: '--metrics-port <number>',
    env: 'ASSAY_METRICS_PORT',
    help: 'answer GET /metrics on a port of its own, without a key; 0 for any free one (default: none)',
  },
  metricsHost: {
    flag: '--metrics-host <address>',
    env: 'ASSAY_METRICS_HOST',
    help: 'address of that port (default: that of --host)',
  },
  metricsNames: {
    flag: '--metrics-names <names>',
    env: 'ASSAY_METRICS_NAMES',
    default: 'assay',
    choices: METRICS_NAMES,
    help: 'vllm: also the names that inference gateways read',
  },
  cacheDir: {
    flag: '--cache-dir <folder>',
    env: 'ASSAY_CACHE_DIR',
    help: 'folder in which cached prompts outlive the server, encrypted; only you may have access to it (default: none)',
  },
  cacheSize: {
    flag: '--cache-size <size>',
    env: 'ASSAY_CACHE_SIZE',
    default: '4GB',
    help: 'most that the saved prompts of a model take there',
  },
  batches: {
    flag: '--batches',
    env: 'ASSAY_BATCHES',
    help: 'keep files and batches of requests in the home folder (/v1/files, /v1/batches), and answer them in the background',
  },
  load: { flag: '--no-load', help: 'load no model at start' },
  allowMediaHost: {
    flag: '--allow-media-host <host...>',
    help: 'hosts that images may be fetched from, such as images.example.com or *.example.com (default: none)',
  },
  allowOrigin: {
    flag: '--allow-origin <origin...>',
    help: 'web pages that may call the server, such as http://localhost:3000',
  },
};

type ListFlag = 'model' | 'alias' | 'allowOrigin' | 'allowMediaHost';
type Switch = 'load' | 'batches' | 'evict' | 'loadOnDemand' | 'metricsQuestions';

/** Describes the flags of `assay serve`, except `--log-level`, as commander returns them. */
export type ServerFlags = Partial<
  Record<Exclude<keyof ServerConfig, ListFlag | Switch | 'apiKey'>, string> &
    Record<Exclude<ListFlag, 'model'>, string[]>
> &
  KeyFlags & { [name in Switch]?: boolean } & { model?: string | string[] };

/**
 * Returns the configuration from flags and environment variables. An empty variable counts as not set.
 *
 * @throws UsageError if a flag or variable is invalid; the message names it and says what is allowed
 * @throws AssayError `invalid_value` if the home folder is below `~` and the account has none
 */
export function serverConfig(flags: ServerFlags, env: Record<string, string | undefined>): ServerConfig {
  const said = v.safeParse(ServerConfig, {
    ...Object.fromEntries(
      Object.entries(SERVER_FLAGS).map(([name, { env: variable = '', default: usual }]) => [
        name,
        flags[name as keyof ServerFlags] ?? (env[variable] || usual),
      ]),
    ),
    home: assayHome(flags, env),
    cacheDir: cacheFolder(flags, env),
    apiKey: apiKeyOf(flags, env),
    model: [flags.model ?? (env.ASSAY_MODEL || 'assay/starter').split(/[\s,]+/u)].flat(),
    metricsQuestions: flags.metricsQuestions ?? env.ASSAY_METRICS_QUESTIONS === '1',
    evict: flags.evict ?? env.ASSAY_EVICT === '1',
    loadOnDemand: flags.loadOnDemand ?? env.ASSAY_LOAD_ON_DEMAND === '1',
    batches: flags.batches ?? env.ASSAY_BATCHES === '1',
    load: flags.load ?? true,
    alias: flags.alias ?? (env.ASSAY_ALIAS ? env.ASSAY_ALIAS.split(/[\s,]+/u) : []),
    allowOrigin: flags.allowOrigin ?? [],
    allowMediaHost: flags.allowMediaHost ?? [],
  });
  if (said.success) return said.output;
  const [issue] = said.issues;
  // The cast is safe: the table has all members of the schema.
  const name = issue.path?.[0]?.key as keyof ServerConfig;
  const { flag, env: variable } = SERVER_FLAGS[name];
  throw new UsageError(`${flag.split(' ', 1)}${variable ? ` (${variable})` : ''} ${issue.message}.`);
}

/** Returns the absolute path of `--cache-dir`; undefined if it is not given. */
function cacheFolder(flags: ServerFlags, env: Record<string, string | undefined>): string | undefined {
  if (flags.cacheDir === '') throw new UsageError('--cache-dir must be a folder.');
  const folder = flags.cacheDir ?? (env.ASSAY_CACHE_DIR || undefined);
  return folder === undefined ? undefined : expandHome(folder, homeFolder);
}

/**
 * Returns the flags with which `assay serve` has the configuration of these flags and variables: all that are set, and
 * the models. Throws as `serverConfig` does.
 */
export function serveFlags(
  flags: ServerFlags,
  env: Record<string, string | undefined>,
  without: readonly (keyof ServerConfig)[],
): string[] {
  const config = serverConfig(flags, env);
  // A cast: the keys of the table are the members of the configuration.
  const names = (Object.keys(SERVER_FLAGS) as (keyof ServerConfig)[]).filter((name) => !without.includes(name));
  return names.flatMap((name) => {
    const { flag, env: variable = '', default: usual } = SERVER_FLAGS[name];
    const [word = ''] = flag.split(' ', 1);
    const value = config[name];
    if (typeof value === 'boolean') return value === word.startsWith('--no-') ? [] : [word];
    if (Array.isArray(value)) return value.length === 0 ? [] : [word, ...value];
    const text = flags[name as keyof ServerFlags] ?? env[variable];
    return !text || text === usual ? [] : [word, String(text)];
  });
}

/**
 * Returns the absolute path of the folder for models, keys and compiled files: `--home`, else `ASSAY_HOME`, else
 * `~/.assay`. A shell does not expand `~` in `--home=~/x`, so it is expanded here.
 *
 * @throws UsageError if `--home` is empty, which would be the current folder
 * @throws AssayError `invalid_value` if the path begins with `~` and the account has no home folder
 */
export function assayHome(flags: { home?: string }, env: Record<string, string | undefined>): string {
  if (flags.home === '') throw new UsageError('--home must be a folder.');
  return expandHome(flags.home ?? (env.ASSAY_HOME || '~/.assay'), homeFolder);
}
