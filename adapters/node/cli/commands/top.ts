import type { Command } from 'commander';
import * as v from 'valibot';
import { isAssayError } from '../../../../lib/errors.ts';
import { Health } from '../../../../lib/schema/status.ts';
import { UsageError } from '../../usage-error.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { wholeNumber } from '../parse-flags.ts';
import { screen, table } from '../screen.ts';
import { figuresBetween, readSample, type Sample } from '../top-figures.ts';

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
