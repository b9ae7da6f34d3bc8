import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { call } from './call.ts';
import { type Kind, requestMix } from './requests.ts';
import { KEY } from './server.ts';

export interface Outcome {
  kind: Kind;
  /** Status of the response; 0 if the connection failed. */
  status: number;
  ms: number;
}

export interface CrowdWork {
  url: string;
  clients: number;
  /** Milliseconds over which the start of the clients is spread. Requests during this time are not counted. */
  arriveMs: number;
  /** Milliseconds, after all clients have started, during which requests are counted. */
  ms: number;
  /** Number of the first request. Each text contains the number of its request, so no text is sent twice. */
  from: number;
}

export interface CrowdReport {
  outcomes: Outcome[];
  asked: number;
  /** Milliseconds by which timers of this process fired late, which is the error of its measurements. */
  late: { p50: number; p99: number };
}

/** Interval of the timer with which the process measures this lateness, in milliseconds. */
const RESOLUTION_MS = 1;

/**
 * Runs clients for some time. Each client sends at least one request. It sends the next one when it has the answer or,
 * if it was refused with 429 or 503, after the time in `Retry-After`.
 */
async function crowd({ url, clients, arriveMs, ms, from }: CrowdWork): Promise<CrowdReport> {
  const request = await requestMix();
  const outcomes: Outcome[] = [];
  let asked = 0;
  const begin = performance.now() + arriveMs;
  const end = begin + ms;
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  setTimeout(() => delay.enable(), arriveMs);
  const client = async (place: number) => {
    await sleep((arriveMs * place) / clients);
    do {
      const { kind, path, body } = request(from + asked++);
      const counts = performance.now() >= begin;
      const { status, retryAfterMs, ms: took } = await call(`${url}${path}`, KEY, body);
      if (counts) outcomes.push({ kind, status, ms: took });
      if (status === 0) await sleep(100);
      if (retryAfterMs > 0) await sleep(Math.min(retryAfterMs, Math.max(0, end - performance.now())));
    } while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: clients }, (_, place) => client(place)));
  const lateness = (percent: number) => delay.percentile(percent) / 1e6 - RESOLUTION_MS;
  return { outcomes, asked, late: { p50: lateness(50), p99: lateness(99) } };
}

// This module runs in its own process, started by `fork`. It receives one message, the work, and sends one, the report.
process.once('message', (work: CrowdWork) => {
  void crowd(work).then((report) => process.send!(report, () => process.exit()));
});
