import { AssayConnectionError, AssayError, AssayTimeoutError, statusError } from './errors.ts';
import { CONTRACT_VERSION } from './generated/contract.ts';
import type {
  DecideRequest,
  DecideResponse,
  DecisionsRequest,
  DecisionsResponse,
  ExtractionsRequest,
  ExtractionsResponse,
  ExtractRequest,
  ExtractResponse,
  RerankRequest,
  RerankResponse,
  RunTasksRequest,
  RunTasksResponse,
  SystemOneRequest,
  SystemOneResponse,
} from './generated/types.gen.ts';
import { sleep, waitBeforeRetry } from './retry.ts';

const DEFAULT_BASE_URL = 'http://127.0.0.1:8080';

export interface AssayOptions {
  /** Address of the server; default: the environment variable ASSAY_URL, else `http://127.0.0.1:8080`. */
  baseUrl?: string;
  /** API key; default: the environment variable ASSAY_API_KEY. */
  apiKey?: string;
  /** Timeout of each attempt in milliseconds; default 120,000. */
  timeout?: number;
  /** Largest number of retries after status 429 or 5xx; default 2. */
  maxRetries?: number;
  /** Function that sends requests; by default the global `fetch`. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** Signal that aborts the call, which then rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Calls the decision service. Calls reject with an `AssayError`. Works wherever `fetch` is available. */
export class Assay {
  readonly baseUrl: string;
  readonly #apiKey: string;
  readonly #timeout: number;
  readonly #maxRetries: number;
  readonly #fetch: typeof fetch;

  constructor(options: AssayOptions = {}) {
    const apiKey = options.apiKey ?? environment('ASSAY_API_KEY');
    if (!apiKey) {
      throw new AssayError('No API key: pass apiKey, or set ASSAY_API_KEY. The server prints one at its first start.');
    }
    this.baseUrl = (options.baseUrl ?? environment('ASSAY_URL') ?? DEFAULT_BASE_URL).replace(/\/+$/, '');
    if (!/^https?:\/\//.test(this.baseUrl)) {
      throw new AssayError(`${this.baseUrl} is no base URL. Pass one such as ${DEFAULT_BASE_URL}, or set ASSAY_URL.`);
    }
    this.#apiKey = apiKey;
    this.#timeout = options.timeout ?? 120_000;
    this.#maxRetries = options.maxRetries ?? 2;
    this.#fetch = options.fetch ?? fetch;
  }

  /** Answers a list of tasks about one shared context. */
  runTasks(request: RunTasksRequest, options?: CallOptions): Promise<RunTasksResponse> {
    return this.#post('/v1/tasks', request, options);
  }

  /** Does the same as `runTasks`. This is the operation's original name and path. */
  decideExtract(request: RunTasksRequest, options?: CallOptions): Promise<RunTasksResponse> {
    return this.#post('/v1/decide-extract', request, options);
  }

  /** Answers one question, with one of the options or in the model's own words. */
  decide(request: DecideRequest, options?: CallOptions): Promise<DecideResponse> {
    return this.#post('/decide', request, options);
  }

  /** Extracts one object with fields from a text. */
  extract(request: ExtractRequest, options?: CallOptions): Promise<ExtractResponse> {
    return this.#post('/extract', request, options);
  }

  /** Answers questions with the probability of every option, in the format of OpenAI's Decisions API. */
  decisions(request: DecisionsRequest, options?: CallOptions): Promise<DecisionsResponse> {
    return this.#post('/v1/decisions', request, options, hasAnswers);
  }

  /** Answers named questions with the probability of every option, in the format of System One. */
  systemOne(request: SystemOneRequest, options?: CallOptions): Promise<SystemOneResponse> {
    return this.#post('/v1/systemone', request, options, hasAnswers);
  }

  /** Extracts typed fields of a text, each with the probability that the text does not contain it. */
  extractions(request: ExtractionsRequest, options?: CallOptions): Promise<ExtractionsResponse> {
    return this.#post('/v1/extractions', request, options, hasAnswers);
  }

  /** Ranks documents by the probability that each is relevant to a query. */
  rerank(request: RerankRequest, options?: CallOptions): Promise<RerankResponse> {
    return this.#post('/v1/rerank', request, options, hasRanks);
  }

  async #post<R>(path: string, body: object, { signal }: CallOptions = {}, isAnswer = hasResults): Promise<R> {
    for (let attempt = 0; ; attempt++) {
      const timeout = AbortSignal.timeout(this.#timeout);
      try {
        const response = await this.#send(path, body, signal ? AbortSignal.any([signal, timeout]) : timeout);
        if (response.ok) return answerIn<R>(await response.json(), isAnswer);
        const wait = waitBeforeRetry(response, attempt);
        if (wait === null || attempt >= this.#maxRetries) throw await statusError(response);
        await response.body?.cancel();
        await sleep(wait, signal);
      } catch (error) {
        if (error instanceof AssayError) throw error;
        signal?.throwIfAborted();
        throw this.#connectionError(error, timeout);
      }
    }
  }

  #send(path: string, body: object, signal: AbortSignal): Promise<Response> {
    const fetch = this.#fetch;
    return fetch(this.baseUrl + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#apiKey}`,
        'content-type': 'application/json',
        'user-agent': `assay-typescript/${CONTRACT_VERSION}`,
      },
      body: JSON.stringify(body),
      signal,
    });
  }

  #connectionError(cause: unknown, timeout: AbortSignal): AssayError {
    if (timeout.aborted) {
      const message = `No answer from ${this.baseUrl} in time. Raise timeout, or send less at once.`;
      return new AssayTimeoutError(message, { cause });
    }
    if (cause instanceof SyntaxError) {
      const message = `What came from ${this.baseUrl} is not Assay's: ${cause.message}. Is baseUrl right?`;
      return new AssayConnectionError(message, { cause });
    }
    return new AssayConnectionError(`No answer from ${this.baseUrl}. Does the server run?`, { cause });
  }
}

/**
 * Returns the body of a response if `isAnswer` accepts it. Throws a `SyntaxError` for any other body, as for invalid
 * JSON.
 */
function answerIn<R>(body: unknown, isAnswer: (body: unknown) => boolean): R {
  if (!isAnswer(body)) throw new SyntaxError('it lacks the members that every answer has');
  return body as R;
}

/** Tells whether a body has the members of every answer of the decision service. */
function hasResults(body: unknown): boolean {
  const { id, choices, results, result } = Object(body);
  return typeof id === 'string' && typeof choices?.[0]?.finish_reason === 'string' && Boolean(results ?? result);
}

/** Tells whether a body has the members of every answer in the two decision formats. */
function hasAnswers(body: unknown): boolean {
  const { model, answers, usage } = Object(body);
  return typeof model === 'string' && typeof answers === 'object' && answers !== null && typeof usage === 'object';
}

/** Tells whether a body has the members of every ranking. */
function hasRanks(body: unknown): boolean {
  const { model, results } = Object(body);
  return typeof model === 'string' && Array.isArray(results);
}

/** Returns an environment variable; undefined in a browser, or if it is unset or empty. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}
