import * as v from 'valibot';
import { rule } from '../validation/rules.ts';
import { described } from './values.ts';

const UNITS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 60e3, h: 3600e3 };
const DURATION = /^[-+]?(\d{1,12}(\.\d{1,9})?(ns|us|µs|ms|s|m|h))+$/u;

const MOST_LENGTH = 64;

/**
 * Limits how long the model stays in memory after this request, in Ollama's form: seconds, or a duration in the form of
 * Go (`time.ParseDuration`).
 */
export const KeepAlive = described(
  v.pipe(
    v.union([v.number(), v.string()]),
    rule((sent) =>
      keepAliveMs(sent) === undefined
        ? { code: 'invalid_value', message: 'must be seconds, such as 300, or a duration, such as "5m"; -1: no limit' }
        : null,
    ),
  ),
  'How long the model stays in memory without further requests: seconds, or a duration such as "5m"; 0: not at all, negative: without a limit. Only a server that loads models on demand unloads them.',
);

/** Returns the milliseconds of a `keep_alive`: infinite for a negative one, undefined if it cannot be read. */
export function keepAliveMs(sent: unknown): number | undefined {
  if (typeof sent === 'number') return Number.isFinite(sent) ? limited(sent * 1000) : undefined;
  // A long text would exhaust the stack of the expression.
  if (typeof sent !== 'string' || sent.length > MOST_LENGTH) return undefined;
  if (/^[-+]?\d{1,12}$/.test(sent)) return limited(Number(sent) * 1000);
  if (!DURATION.test(sent)) return undefined;
  const parts = [...sent.matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/gu)];
  const ms = parts.reduce((sum, [, number, unit = '']) => sum + Number(number) * (UNITS[unit] ?? 0), 0);
  return limited(sent.startsWith('-') ? -ms : ms);
}

const limited = (ms: number): number => (ms < 0 ? Number.POSITIVE_INFINITY : ms);
