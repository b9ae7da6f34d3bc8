import type { Command } from 'commander';
import * as v from 'valibot';
import { isAssayError } from '../../../../lib/errors.ts';
import { Health } from '../../../../lib/schema/status.ts';
import { UsageError } from '../../usage-error.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { wholeNumber } from '../parse-flags.ts';
import { screen, table } from '../screen.ts';

type TopFlags = ConnectionFlags & { interval: number; once?: boolean };

/** Control sequence that moves the cursor to the top left and clears the screen. */
const REDRAW = '\u001b[H\u001b[J';

/** Adds the command `assay top`. */
export function addTop(program: Command): void {
  connectionFlags(
    program
      .command('top')
      .description('Show the queue, tokens per second and memory of the running server, live.')
      .option('-n, --interval <seconds>', 'seconds between two readings', wholeNumber(1, 3600), 2)
      .option('--once', 'show the figures of one interval, then end; the default if the output is not a terminal'),
  )
    .addHelpText('after', TOP_HELP)
    .action(async (flags: TopFlags) => {
      const connection = await connect(flags, { alone: false });
      const metrics = () =>
        connection.request('/metrics', { accept: 'text/plain' }).catch((error: unknown) => {
          if (!isAssayError(error, 'route_not_found')) throw error;
          throw new UsageError(`An edge has no metrics, only its boxes have: give the address of one with --url.`);
        });
      const read = async (): Promise<Sample> => readSample(await (await metrics()).text(), performance.now());
      const once = flags.once || flags.json || process.stdout.isTTY !== true;
      let before = await read();
      do {
        await new Promise((resolve) => setTimeout(resolve, flags.interval * 1000));
        const now = await read();
        const figures = figuresBetween(before, now);
        const health = v.parse(Health, await (await connection.request('/health')).json());
        if (flags.json) return screen.json({ url: connection.url, model: health.active_model, ...figures });
        const rows = [
          ['server', connection.url ?? ''],
          ['model', `${health.active_model} (${health.state})`],
        ];
        const shown = Object.entries(figures).map(([name, value]) => [
          name.replace(/_bytes$/, '').replaceAll('_', ' '),
          formatted(name, value),
        ]);
        screen.out(`${once ? '' : REDRAW}${table([...rows, ...shown])}\n`);
        before = now;
      } while (!once);
    });
}

const TOP_HELP = `
Press Ctrl-C to end. The figures come from GET /metrics.

Examples:
  $ assay top
  $ assay top --once --json | jq .requests_waiting`;

function formatted(name: string, value: number | null): string {
  if (value === null) return 'unknown';
  if (name.endsWith('_bytes')) return `${(value / 1e6).toFixed(0)} MB`;
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

/** Holds one reading of `GET /metrics`. */
interface Sample {
  /** Time of the reading, in milliseconds of a monotonic clock. */
  at: number;
  /** Value of each metric by its name, summed over its labels. */
  values: ReadonlyMap<string, number>;
}

/** Holds the figures that `assay top` shows; rates are means over one interval. Null: the server does not report it. */
interface Figures {
  requests_running: number | null;
  requests_waiting: number | null;
  requests_per_second: number | null;
  prompt_tokens_per_second: number | null;
  prompt_tokens_cached_per_second: number | null;
  completion_tokens_per_second: number | null;
  engine_memory_bytes: number | null;
  server_memory_bytes: number | null;
  engine_restarts: number | null;
}

/**
 * Parses Prometheus' text format, lines of `name{labels} value`. Skips comments, any other lines and values that are
 * not finite. `at` is the time of the reading in milliseconds.
 */
export function readSample(text: string, at: number): Sample {
  const values = new Map<string, number>();
  for (const [, name, value] of text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})? (\S+)(?: \d+)?$/gm)) {
    const number = Number(value);
    if (Number.isFinite(number)) values.set(name!, (values.get(name!) ?? 0) + number);
  }
  return { at, values };
}

/**
 * Returns the figures for the time between two readings. A counter that is lower than before belongs to a server that
 * was restarted, so its whole value counts.
 */
export function figuresBetween(before: Sample, now: Sample): Figures {
  const seconds = (now.at - before.at) / 1000;
  const gauge = (name: string) => now.values.get(name) ?? null;
  const rate = (name: string) => {
    const count = now.values.get(name);
    if (count === undefined || seconds <= 0) return null;
    const earlier = before.values.get(name) ?? 0;
    return (count < earlier ? count : count - earlier) / seconds;
  };
  return {
    requests_running: gauge('assay_requests_running'),
    requests_waiting: gauge('assay_requests_waiting'),
    requests_per_second: rate('assay_requests_total'),
    prompt_tokens_per_second: rate('assay_prompt_tokens_total'),
    prompt_tokens_cached_per_second: rate('assay_prompt_tokens_cached_total'),
    completion_tokens_per_second: rate('assay_completion_tokens_total'),
    engine_memory_bytes: gauge('assay_engine_resident_bytes'),
    server_memory_bytes: gauge('process_resident_memory_bytes'),
    engine_restarts: gauge('assay_engine_restarts_total'),
  };
}
