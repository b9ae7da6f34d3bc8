import { homedir } from 'node:os';
import { AssayError } from '../../lib/errors.ts';
import { expandHome, join } from './paths.ts';

/**
 * Settings of the model hub from the environment. Names and defaults are those of Python's `huggingface_hub` (its
 * "Environment variables" page).
 */
export interface HubEnvironment {
  /** Directory of the cache that Hugging Face tools share: `HF_HUB_CACHE`, or by default `$HF_HOME/hub`. */
  hubCache: string;
  /** Base URL of the hub (`HF_ENDPOINT`), without a trailing slash. */
  endpoint: string;
  /** File to which `hf auth login` writes the access token. */
  tokenFile: string;
  /** Access token from `HF_TOKEN`, which overrides the file; null if not set. */
  token: string | null;
  /** True if the hub must never be contacted (`HF_HUB_OFFLINE`). */
  offline: boolean;
}

type Variables = Readonly<Record<string, string | undefined>>;

const YES = new Set(['1', 'ON', 'YES', 'TRUE']);

/** Returns the home folder of the account. Throws `invalid_value` if it has none, as in some containers. */
export function homeFolder(): string {
  try {
    return homedir();
  } catch (cause) {
    const message = 'This account has no home folder. Set HOME to a folder, or set ASSAY_HOME and HF_HOME.';
    throw new AssayError('invalid_value', message, { cause });
  }
}

/**
 * Reads the settings from environment variables. An empty variable counts as not set. Asks for the home folder only if
 * a path needs it, and throws `invalid_value` if the account then has none.
 */
export function hubEnvironment(env: Variables = process.env, home: () => string = homeFolder): HubEnvironment {
  const path = (name: string): string | undefined => (env[name] ? expandHome(env[name], home) : undefined);
  const hfHome = () => path('HF_HOME') ?? join(path('XDG_CACHE_HOME') ?? join(home(), '.cache'), 'huggingface');
  return {
    hubCache: path('HF_HUB_CACHE') ?? path('HUGGINGFACE_HUB_CACHE') ?? join(hfHome(), 'hub'),
    endpoint: (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, ''),
    tokenFile: path('HF_TOKEN_PATH') ?? join(hfHome(), 'token'),
    token: env.HF_TOKEN?.trim() || env.HUGGING_FACE_HUB_TOKEN?.trim() || null,
    offline: YES.has((env.HF_HUB_OFFLINE || env.TRANSFORMERS_OFFLINE || '').toUpperCase()),
  };
}
