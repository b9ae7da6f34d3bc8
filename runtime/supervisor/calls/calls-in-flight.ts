import type { AssayError } from '../../../lib/errors.ts';
import { FairTurns, nameOf } from '../../../lib/limits/fair-turns.ts';
import { answerTokens, sizeOfRequest } from '../../../lib/limits/request-size.ts';
import { partsOf } from '../../protocol/message-parts.ts';
import { type FromEngine, type PreparedMedia, requestOf } from '../../protocol/messages.ts';
import type { EngineChild } from '../children/engine-child.ts';
import { type AdmissionLimits, AdmissionQueue, DEFAULT_ADMISSION_LIMITS } from './admission-queue.ts';
import { type CallOptions, EngineCall } from './call.ts';

/**
 * Characters or bytes from which a message is sent in parts, in turns between callers: what is in the channel keeps
 * every later message waiting, the short one of another caller, too.
 */
const LONG_MESSAGE = 64 * 1024;

/** Holds the calls to the engine process until each is `settled`, and bounds them with an admission queue. */
export class CallsInFlight {
  readonly #admission: AdmissionQueue;
  readonly #calls = new Map<string, EngineCall>();
  readonly #outbox = new FairTurns();
  readonly #onIdle: () => void;
  #nextId = 0;

  /**
   * @param limits replace those of `DEFAULT_ADMISSION_LIMITS`
   * @param onIdle called whenever the last call has settled
   */
  constructor(limits: Partial<AdmissionLimits> | undefined, onIdle: () => void) {
    this.#admission = new AdmissionQueue({ ...DEFAULT_ADMISSION_LIMITS, ...limits });
    this.#onIdle = onIdle;
  }

  /** Number of calls that have not settled. */
  get size(): number {
    return this.#calls.size;
  }

  /** Number of requests that the admission queue has admitted. */
  get admitted(): number {
    return this.#admission.held;
  }

  /** Tokens of work of these requests. */
  get admittedTokens(): number {
    return this.#admission.tokens;
  }

  /**
   * Admits a request and returns its call, which sends nothing before `Call.prepare`. Throws `overloaded` if the
   * admission queue is full, and the error of `ready`.
   *
   * @param ready resolves to the engine process, once one is running
   */
  async open(options: CallOptions, ready: () => Promise<Pick<EngineChild, 'send'>>): Promise<EngineCall> {
    const { priority, caller } = options;
    const request = requestOf(options.work);
    const size = sizeOfRequest(request);
    const admission = this.#admission.admit(size, priority, caller?.caller);
    const child = await ready().catch((error) => {
      admission.release(false);
      throw error;
    });
    const id = (this.#nextId++).toString(36);
    const call = new EngineCall(
      {
        id,
        sendWork: (message, sending, signal) => {
          const bytes = message.type === 'prepare' ? size.characters : bytesOf(message.media ?? []);
          if (bytes < LONG_MESSAGE) {
            sending();
            child.send({ ...message, id });
            return;
          }
          const parts = partsOf({ ...message, id });
          const sendPart = () => {
            sending();
            const part = parts.next();
            return !part.done && new Promise<boolean>((sent) => child.send(part.value, () => sent(!part.value.last)));
          };
          const sendAll = async () => {
            while (await this.#outbox.run(nameOf({ ...caller, priority }), sendPart, signal));
          };
          // It rejects only if the call has ended.
          sendAll().catch(() => {});
        },
        sendCancel: () => child.send({ type: 'cancel', id }),
        counted: (promptTokens) => admission.recount(promptTokens + answerTokens(request)),
        settled: (answered) => {
          admission.release(answered);
          this.#calls.delete(id);
          if (this.#calls.size === 0) this.#onIdle();
        },
      },
      options,
    );
    this.#calls.set(id, call);
    return call;
  }

  /** Passes a message from the engine process to the call with its `id`. Ignores messages without such a call. */
  onMessage(message: FromEngine): void {
    if ('id' in message) this.#calls.get(message.id)?.onMessage(message);
  }

  /** Fails all calls, each with the error that `errorFor` returns, because their engine process has ended. */
  fail(errorFor: (call: EngineCall) => AssayError): void {
    for (const call of [...this.#calls.values()]) call.fail(errorFor(call), { cancel: false });
  }
}

const bytesOf = (media: readonly PreparedMedia[]) => media.reduce((sum, { data }) => sum + data.byteLength, 0);
