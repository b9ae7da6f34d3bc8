import * as v from 'valibot';
import { asModelId } from '../../lib/model-id.ts';
import { CONFIDENCES, MOST_ORDERS } from '../../lib/schema/question-fields.ts';
import { PRECISIONS } from '../../runtime/compile/form-choice.ts';
import { DEVICE_CHOICES } from '../../runtime/device/device-table.ts';
import { LONG_INPUTS } from '../../runtime/slot/model-slot.ts';
import { DTYPES } from '../../runtime/store/dtypes.ts';
import { homeFolder } from '../../runtime/store/environment.ts';
import { expandHome } from '../../runtime/store/paths.ts';
import { ISOLATION_MODES } from '../../runtime/supervisor/isolation/isolation.ts';
import { METRICS_NAMES } from '../../runtime/supervisor/metrics.ts';
import { apiKeyOf, type KeyFlags } from './api-key.ts';
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

/** Returns the schema of a number of seconds, 0 to an hour, as text. */
const seconds = () =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,4}$/, 'must be a whole number of seconds, 0 to 3600'),
    v.transform(Number),
    v.maxValue(3600, 'must be a whole number of seconds, 0 to 3600'),
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
  /** Model to load at start. */
  model: v.pipe(
    v.string(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      const id = asModelId(dataset.value);
      if (id) return id;
      addIssue({ message: 'must be <namespace>/<name>, such as assay/starter' });
      return NEVER;
    }),
  ),
  /** Device that runs the model; `auto`: Assay chooses the best one. */
  device: v.picklist(DEVICE_CHOICES, `must be one of ${DEVICE_CHOICES.join(', ')}`),
  /** Number format of the weights to download; if absent, the best one for the device. */
  dtype: v.optional(v.picklist(DTYPES, `must be one of ${DTYPES.join(', ')}`)),
  /** Number format of compiled weights; `auto`: the fastest that is accurate on this machine. */
  precision: v.picklist(PRECISIONS, `must be one of ${PRECISIONS.join(', ')}`),
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

type QuestionFlag = 'orders' | 'abstainBelow' | 'confidence';

/** Describes the flags of `assay serve`, except `--log-level`, as commander returns them. */
export type ServerFlags = Partial<
  Record<
    | 'host'
    | 'port'
    | 'home'
    | 'model'
    | 'device'
    | 'dtype'
    | 'precision'
    | 'chatMaxTokens'
    | 'isolation'
    | 'metricsNames'
    | 'metricsPort'
    | 'metricsHost'
    | 'shutdownDelay'
    | 'drainSeconds'
    | 'longInput'
    | QuestionFlag,
    string
  >
> &
  KeyFlags & {
    load?: boolean;
    alias?: string[];
    allowOrigin?: string[];
    allowMediaHost?: string[];
  };

const FLAG: Record<keyof ServerConfig, string> = {
  host: '--host',
  port: '--port (PORT)',
  home: '--home (ASSAY_HOME)',
  apiKey: '--api-key (ASSAY_API_KEY)',
  model: '--model (ASSAY_MODEL)',
  device: '--device (ASSAY_DEVICE)',
  dtype: '--dtype (ASSAY_DTYPE)',
  precision: '--precision (ASSAY_PRECISION)',
  chatMaxTokens: '--chat-max-tokens (ASSAY_CHAT_MAX_TOKENS)',
  orders: '--orders (ASSAY_ORDERS)',
  abstainBelow: '--abstain-below (ASSAY_ABSTAIN_BELOW)',
  confidence: '--confidence (ASSAY_CONFIDENCE)',
  longInput: '--long-input (ASSAY_LONG_INPUT)',
  isolation: '--isolation (ASSAY_ISOLATION)',
  shutdownDelay: '--shutdown-delay (ASSAY_SHUTDOWN_DELAY)',
  drainSeconds: '--drain-seconds (ASSAY_DRAIN_SECONDS)',
  metricsNames: '--metrics-names (ASSAY_METRICS_NAMES)',
  metricsPort: '--metrics-port (ASSAY_METRICS_PORT)',
  metricsHost: '--metrics-host (ASSAY_METRICS_HOST)',
  load: '--no-load',
  alias: '--alias (ASSAY_ALIAS)',
  allowOrigin: '--allow-origin',
  allowMediaHost: '--allow-media-host',
};

/**
 * Returns the configuration from flags and environment variables. An empty variable counts as not set.
 *
 * @throws UsageError if a flag or variable is invalid; the message names it and says what is allowed
 * @throws AssayError `invalid_value` if the home folder is below `~` and the account has none
 */
export function serverConfig(flags: ServerFlags, env: Record<string, string | undefined>): ServerConfig {
  const said = v.safeParse(ServerConfig, {
    host: flags.host ?? '127.0.0.1',
    port: flags.port ?? (env.PORT || '8080'),
    home: assayHome(flags, env),
    apiKey: apiKeyOf(flags, env),
    model: flags.model ?? (env.ASSAY_MODEL || 'assay/starter'),
    device: flags.device ?? (env.ASSAY_DEVICE || 'auto'),
    dtype: flags.dtype ?? (env.ASSAY_DTYPE || undefined),
    precision: flags.precision ?? (env.ASSAY_PRECISION || 'auto'),
    chatMaxTokens: flags.chatMaxTokens ?? (env.ASSAY_CHAT_MAX_TOKENS || '1024'),
    orders: flags.orders ?? (env.ASSAY_ORDERS || '1'),
    abstainBelow: flags.abstainBelow ?? (env.ASSAY_ABSTAIN_BELOW || '0'),
    confidence: flags.confidence ?? (env.ASSAY_CONFIDENCE || undefined),
    longInput: flags.longInput ?? (env.ASSAY_LONG_INPUT || 'refuse'),
    isolation: flags.isolation ?? (env.ASSAY_ISOLATION || 'auto'),
    shutdownDelay: flags.shutdownDelay ?? (env.ASSAY_SHUTDOWN_DELAY || undefined),
    drainSeconds: flags.drainSeconds ?? (env.ASSAY_DRAIN_SECONDS || '10'),
    metricsNames: flags.metricsNames ?? (env.ASSAY_METRICS_NAMES || 'assay'),
    metricsPort: flags.metricsPort ?? (env.ASSAY_METRICS_PORT || undefined),
    metricsHost: flags.metricsHost ?? (env.ASSAY_METRICS_HOST || undefined),
    load: flags.load ?? true,
    alias: flags.alias ?? (env.ASSAY_ALIAS ? env.ASSAY_ALIAS.split(/[\s,]+/u) : []),
    allowOrigin: flags.allowOrigin ?? [],
    allowMediaHost: flags.allowMediaHost ?? [],
  });
  if (said.success) return said.output;
  const [issue] = said.issues;
  // The cast is safe: `FLAG` has all members of the schema.
  throw new UsageError(`${FLAG[issue.path?.[0]?.key as keyof ServerConfig]} ${issue.message}.`);
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
