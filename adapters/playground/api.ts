/**
 * Name of the session storage item with the API key. Only this browser tab can read it, and it is gone when the tab
 * closes.
 */
const KEY = 'assay-api-key';

export const storedKey = {
  get: (): string => sessionStorage.getItem(KEY) ?? '',
  set: (key: string): void => (key === '' ? sessionStorage.removeItem(KEY) : sessionStorage.setItem(KEY, key)),
};

/** Reports an error response of the server: its message, its code and, if there is one, the invalid field. */
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
}

/** Sends a request to the server of this page. Throws `ApiError` if the server does not answer with status 2xx. */
export async function call(path: string, { method, body, accept, signal }: CallOptions = {}): Promise<Response> {
  const key = storedKey.get();
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
    if (signal?.aborted) throw cause;
    throw new ApiError(0, 'unreachable', 'The server does not answer. Is it still running?');
  }
  if (!response.ok) throw await refused(response);
  return response;
}

async function refused(response: Response): Promise<ApiError> {
  const body = await response.json().catch(() => null);
  const error = body?.error;
  if (typeof error?.message !== 'string') {
    return new ApiError(response.status, 'http_error', `The server answered ${response.status}.`);
  }
  return new ApiError(response.status, error.code ?? error.type, error.message, error.param);
}
