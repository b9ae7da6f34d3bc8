/**
 * Name of the session storage item with the API key. Only this browser tab can read it, and it is gone when the tab
 * closes.
 */
const KEY = 'assay-api-key';

export const storedKey = {
  get: (): string => sessionStorage.getItem(KEY) ?? '',
  set: (key: string): void => (key === '' ? sessionStorage.removeItem(KEY) : sessionStorage.setItem(KEY, key)),
};

/**
 * Reports an error response of the server: its message, status and code, and the path of an invalid field (`param`).
 * Status 0: there was no response, or it ended early.
 */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string | undefined;

  constructor(status: number, code: string, message: string, param?: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

interface CallOptions {
  method?: 'GET' | 'POST';
  body?: unknown;
  accept?: string;
  signal?: AbortSignal;
  /** The API key to send; the stored one by default, and none if it is empty. */
  key?: string;
}

/**
 * Sends a request to the server of this page. Throws `ApiError` if the key has an invalid character, or if the server
 * does not answer with status 2xx or not before `signal` times out; an `AbortError` if `signal` was aborted.
 */
export async function call(path: string, options: CallOptions = {}): Promise<Response> {
  const { method, body, accept, signal, key = storedKey.get() } = options;
  // `fetch` throws for such a header, as it does if the server cannot be reached.
  if (!/^[\x21-\x7e]*$/.test(key)) {
    throw new ApiError(401, 'invalid_api_key', 'The API key contains a character that no key has. Copy it again.');
  }
  let response: Response;
  try {
    response = await fetch(path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(accept === undefined ? {} : { accept }),
        ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw new ApiError(0, 'unreachable', 'The server does not answer. Is it still running?');
  }
  if (!response.ok) throw await refused(response);
  return response;
}

/** Maps a path to the last key that the server refused for it, with the error. */
const refusals = new Map<string, { key: string; refusal: ApiError }>();

/**
 * Requests a path, with a timeout of ten seconds, for views that update themselves. Throws the errors of `call`. If the
 * server has refused the stored key for this path, throws that error again without a request, so that the browser's
 * console does not fill with errors.
 */
export async function poll(path: string): Promise<Response> {
  const key = storedKey.get();
  const known = refusals.get(path);
  if (known?.key === key) throw known.refusal;
  try {
    return await call(path, { key, signal: AbortSignal.timeout(10_000) });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) refusals.set(path, { key, refusal: error });
    throw error;
  }
}

async function refused(response: Response): Promise<ApiError> {
  const body = await response.json().catch(() => null);
  const error = body?.error;
  if (typeof error?.message !== 'string') {
    return new ApiError(response.status, 'http_error', `The server answered ${response.status}.`);
  }
  return new ApiError(response.status, error.code ?? error.type, error.message, error.param);
}
