import * as v from 'valibot';
import { asModelId } from '../../lib/model-id.ts';
import { CONFIDENCES, MOST_ORDERS } from '../../lib/schema/question-fields.ts';
import { modelId } from '../../lib/schema/values.ts';
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

const ModelName = modelId('must be <namespace>/<name>, such as assay/starter');

/** Bytes of each unit of memory; without a B, as in Docker, 1G is 1 GiB. */
const UNITS: Readonly<Record<string, number>> = {
  M: 2 ** 20,
  MB: 1e6,
  MIB: 2 ** 20,
  G: 2 ** 30,
  GB: 1e9,
  GIB: 2 ** 30,
};

/** Returns the schema of a whole number as text. */
const whole = (least: number, most: number, what = 'a whole number, ') =>
  v.pipe(
    v.string(),
    v.check(
      (text) => /^\d{1,7}$/.test(text) && Number(text) >= least && Number(text) <= most,
      `must be ${what}${least} to ${most}`,
    ),
    v.transform(Number),
  );
const port = whole(0, 65535, '');
const seconds = whole(0, 3600, 'a whole number of seconds, ');

const share = v.pipe(
  v.string(),
  v.regex(/^(0|1|0?\.\d{1,9}|1\.0*)$/, 'must be a number from 0 to 1'),
  v.transform(Number),
);
const address = v.pipe(v.string(), v.nonEmpty('must be an address or a host name'));

/** Returns the members of a setting with one of these values. */
const oneOf = <const TChoices extends readonly string[]>(choices: TChoices) => ({
  choices,
  schema: v.picklist(choices, `must be one of ${choices.join(', ')}`),
});

/** A number of bytes as text, such as 8GB. */
const size = v.pipe(
  v.string(),
  v.regex(/^(?!0)\d{1,6}(\.\d{1,3})?\s?(M|G)(i?B)?$/i, 'must be a size, such as 8GB or 512MiB'),
  v.transform((text) => Number.parseFloat(text) * UNITS[text.replace(/^[\d.\s]+/, '').toUpperCase()]!),
);

/** Describes a setting of the server, and the flag of `assay serve` that sets it. */
interface Setting {
  /** The flag as its help shows it, such as `--port <number>`. */
  flag: string;
  help: string;
  /** Environment variable that holds the value if the flag is not given; `1` turns a switch on. */
  env?: string;
  /** Value if neither is given. */
  default?: string;
  choices?: readonly string[];
  /** Schema of the value: of its text, of a switch's boolean, or of a list of texts. */
  schema: v.GenericSchema;
}

/**
 * The settings of the server, in the order of the help of `assay serve`, except `--log-level` and `--api-key-file`.
 * Flags override environment variables, which override the defaults.
 */
const SETTINGS = {
  host: {
    flag: '--host <address>',
    default: '127.0.0.1',
    help: 'address to listen on; any other than loopback requires an API key',
    // An IPv6 address is often written in brackets, as in a URL: [::1].
    schema: v.pipe(
      v.string(),
      v.transform((text) => text.replace(/^\[(.*)\]$/, '$1')),
      address,
    ),
  },
  port: {
    flag: '--port <number>',
    env: 'PORT',
    default: '8080',
    help: 'port to listen on, 0 for any free one',
    schema: port,
  },
  home: {
    flag: '--home <folder>',
    env: 'ASSAY_HOME',
    default: '~/.assay',
    help: 'folder with models and keys',
    schema: v.string(),
  },
  apiKey: {
    flag: '--api-key <key>',
    env: 'ASSAY_API_KEY',
    help: `key to accept besides those in the home folder; ${KEY_HELP.visible}`,
    schema: v.optional(
      v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,256}$/, 'must be 1 to 256 visible ASCII characters')),
    ),
  },
  model: {
    flag: '--model <id...>',
    env: 'ASSAY_MODEL',
    default: 'assay/starter',
    help: 'models to load at start; several stay in memory beside each other',
    schema: v.pipe(
      v.array(ModelName),
      v.nonEmpty('must be <namespace>/<name>, such as assay/starter'),
      v.maxLength(64, 'may be at most 64 models'),
    ),
  },
  memory: {
    flag: '--memory <size>',
    env: 'ASSAY_MEMORY',
    help: 'memory for models, such as 8GB: loaded models then stay beside each other as long as they fit (default for several models: 80% of the machine)',
    schema: v.optional(size),
  },
  evict: {
    flag: '--evict',
    env: 'ASSAY_EVICT',
    help: 'if a model does not fit, unload those that were used least recently (1 in the variable)',
    schema: v.boolean(),
  },
  loadOnDemand: {
    flag: '--load-on-demand',
    env: 'ASSAY_LOAD_ON_DEMAND',
    help: 'load a model of this machine when the first request for it arrives, and honour keep_alive (1 in the variable)',
    schema: v.boolean(),
  },
  device: {
    flag: '--device <device>',
    env: 'ASSAY_DEVICE',
    default: 'auto',
    help: 'device that runs the model; assay doctor shows which work',
    ...oneOf(DEVICE_CHOICES),
  },
  dtype: {
    flag: '--dtype <format>',
    env: 'ASSAY_DTYPE',
    help: 'number format of downloaded weights',
    choices: DTYPES,
    schema: v.optional(oneOf(DTYPES).schema),
  },
  precision: {
    flag: '--precision <name>',
    env: 'ASSAY_PRECISION',
    default: 'auto',
    help: 'precision to compile',
    ...oneOf(REQUESTED_PRECISIONS),
  },
  chatMaxTokens: {
    flag: '--chat-max-tokens <number>',
    env: 'ASSAY_CHAT_MAX_TOKENS',
    default: '1024',
    help: 'most tokens of a chat answer if the request sets no max_tokens',
    // The bound of `max_tokens` in a chat request.
    schema: whole(1, 1_048_576),
  },
  orders: {
    flag: '--orders <number>',
    env: 'ASSAY_ORDERS',
    default: '1',
    help: 'orders in which questions with probabilities show their options, 1 to 8',
    schema: whole(1, MOST_ORDERS),
  },
  abstainBelow: {
    flag: '--abstain-below <probability>',
    env: 'ASSAY_ABSTAIN_BELOW',
    default: '0',
    help: 'abstain from a choice whose most probable option is below this, 0 to 1',
    schema: share,
  },
  escalate: {
    flag: '--escalate <model|url>',
    env: 'ASSAY_ESCALATE',
    help: 'ask uncertain questions again: a model of this server, or a server with /v1/systemone (its key: ASSAY_ESCALATE_KEY)',
    schema: v.optional(
      v.pipe(
        v.string(),
        v.check(
          (text) => asModelId(text) !== null || (/^https?:/.test(text) && URL.canParse(text)),
          'must be the id of a model of this server, or the address of a server with /v1/systemone',
        ),
      ),
    ),
  },
  escalateBelow: {
    flag: '--escalate-below <probability>',
    env: 'ASSAY_ESCALATE_BELOW',
    default: '0.8',
    help: 'with --escalate, ask again if the most probable option is below this, 0 to 1',
    schema: share,
  },
  metricsQuestions: {
    flag: '--metrics-questions',
    env: 'ASSAY_METRICS_QUESTIONS',
    help: 'keep histograms of the confidence by the names of questions, at most 64, in /metrics (1 in the variable)',
    schema: v.boolean(),
  },
  confidence: {
    flag: '--confidence <formula>',
    env: 'ASSAY_CONFIDENCE',
    help: 'formula for the confidence of an answer (default: margin for System One, else entropy)',
    choices: CONFIDENCES,
    schema: v.optional(oneOf(CONFIDENCES).schema),
  },
  longInput: {
    flag: '--long-input <mode>',
    env: 'ASSAY_LONG_INPUT',
    default: 'refuse',
    help: 'refuse: a text that an encoder model cannot read whole is an error; windows: it is read in parts, where the model family defines that',
    ...oneOf(LONG_INPUTS),
  },
  isolation: {
    flag: '--isolation <mode>',
    env: 'ASSAY_ISOLATION',
    default: 'auto',
    help: 'auto: every isolation layer that the system supports (see assay doctor); strict: all layers, or the server does not start; off',
    ...oneOf(ISOLATION_MODES),
  },
  alias: {
    flag: '--alias <name...>',
    env: 'ASSAY_ALIAS',
    help: 'other names for the loaded model, such as gpt-4o-mini',
    schema: v.array(Alias),
  },
  shutdownDelay: {
    flag: '--shutdown-delay <seconds>',
    env: 'ASSAY_SHUTDOWN_DELAY',
    help: 'after SIGTERM, still take requests for this time but report not ready (default: 5 if something asks /health/ready, else 0)',
    schema: v.optional(seconds),
  },
  drainSeconds: {
    flag: '--drain-seconds <seconds>',
    env: 'ASSAY_DRAIN_SECONDS',
    default: '10',
    help: 'time for running requests to finish before the server ends',
    schema: seconds,
  },
  metricsPort: {
    flag: '--metrics-port <number>',
    env: 'ASSAY_METRICS_PORT',
    help: 'answer GET /metrics on a port of its own, without a key; 0 for any free one (default: none)',
    schema: v.optional(port),
  },
  metricsHost: {
    flag: '--metrics-host <address>',
    env: 'ASSAY_METRICS_HOST',
    help: 'address of that port (default: that of --host)',
    schema: v.optional(address),
  },
  metricsNames: {
    flag: '--metrics-names <names>',
    env: 'ASSAY_METRICS_NAMES',
    default: 'assay',
    help: 'vllm: also the names that inference gateways read',
    ...oneOf(METRICS_NAMES),
  },
  cacheDir: {
    flag: '--cache-dir <folder>',
    env: 'ASSAY_CACHE_DIR',
    help: 'folder in which cached prompts outlive the server, encrypted; only you may have access to it (default: none)',
    schema: v.optional(v.string()),
  },
  cacheSize: {
    flag: '--cache-size <size>',
    env: 'ASSAY_CACHE_SIZE',
    default: '4GB',
    help: 'most that the saved prompts of a model take there',
    schema: size,
  },
  batches: {
    flag: '--batches',
    env: 'ASSAY_BATCHES',
    help: 'keep files and batches of requests in the home folder (/v1/files, /v1/batches), and answer them in the background',
    schema: v.boolean(),
  },
  load: { flag: '--no-load', help: 'load no model at start', schema: v.boolean() },
  allowMediaHost: {
    flag: '--allow-media-host <host...>',
    help: 'hosts that images may be fetched from, such as images.example.com or *.example.com (default: none)',
    schema: v.array(MediaHost),
  },
  allowOrigin: {
    flag: '--allow-origin <origin...>',
    help: 'web pages that may call the server, such as http://localhost:3000',
    schema: v.array(Origin),
  },
} satisfies Readonly<Record<string, Setting>>;

export type SettingName = keyof typeof SETTINGS;
export const SERVER_FLAGS: Readonly<Record<SettingName, Setting>> = SETTINGS;
/** The names of the settings, in the order of the help. */
export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

/** Describes the server's configuration: the values of its settings. Paths are absolute, sizes are bytes. */
export const ServerConfig = v.object(
  // The cast restores the names and schemas, which `fromEntries` forgets.
  Object.fromEntries(Object.entries(SETTINGS).map(([name, { schema }]) => [name, schema])) as {
    [name in SettingName]: (typeof SETTINGS)[name]['schema'];
  },
);
export type ServerConfig = v.InferOutput<typeof ServerConfig>;

/** Describes the flags of `assay serve`, except `--log-level`, as commander returns them. */
export type ServerFlags = KeyFlags & {
  [name in SettingName]?: ServerConfig[name] extends boolean
    ? boolean
    : ServerConfig[name] extends readonly string[]
      ? string | string[]
      : string;
};

/**
 * Returns the configuration from flags and environment variables. An empty variable counts as not set.
 *
 * @throws UsageError if a flag or variable is invalid; the message names it and says what is allowed
 * @throws AssayError `invalid_value` if the home folder is below `~` and the account has none
 */
export function serverConfig(flags: ServerFlags, env: Record<string, string | undefined>): ServerConfig {
  const given = SETTING_NAMES.map((name) => [name, givenValue(SERVER_FLAGS[name], flags[name], env)]);
  const said = v.safeParse(ServerConfig, {
    ...Object.fromEntries(given),
    home: assayHome(flags, env),
    cacheDir: cacheFolder(flags, env),
    apiKey: apiKeyOf(flags, env),
  });
  if (said.success) return said.output;
  const [issue] = said.issues;
  // The cast is safe: the schema has exactly the settings.
  const name = issue.path?.[0]?.key as SettingName;
  const { flag, env: variable } = SERVER_FLAGS[name];
  throw new UsageError(`${flag.split(' ', 1)}${variable ? ` (${variable})` : ''} ${issue.message}.`);
}

/** Returns the value of a setting before it is checked: of its flag, else of its variable, else its default. */
function givenValue(
  { flag, env: variable = '', default: usual }: Setting,
  given: string | string[] | boolean | undefined,
  env: Record<string, string | undefined>,
): unknown {
  const text = env[variable] || usual;
  if (!flag.includes('<')) return given ?? (flag.startsWith('--no-') || text === '1');
  if (!flag.includes('...')) return given ?? text;
  return [given ?? text?.split(/[\s,]+/u) ?? []].flat();
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
  without: readonly SettingName[],
): string[] {
  const config = serverConfig(flags, env);
  const names = SETTING_NAMES.filter((name) => !without.includes(name));
  return names.flatMap((name) => {
    const { flag, env: variable = '', default: usual } = SERVER_FLAGS[name];
    const [word = ''] = flag.split(' ', 1);
    const value = config[name];
    if (typeof value === 'boolean') return value === word.startsWith('--no-') ? [] : [word];
    if (Array.isArray(value)) return value.length === 0 ? [] : [word, ...value];
    const text = flags[name] ?? env[variable];
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
