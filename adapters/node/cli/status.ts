import type { Command } from 'commander';
import * as v from 'valibot';
import { Health } from '../../../lib/schema/status.ts';
import { type ConnectionFlags, connect, connectionFlags } from './connection.ts';
import { screen, table } from './screen.ts';

/** `assay status` */
export function addStatus(program: Command): void {
  connectionFlags(program.command('status').description('Tell whether a server runs, and what it has loaded.'))
    .addHelpText('after', '\nExit code 3 where no server runs.\n\nExample:\n  $ assay status --json | jq -r .state')
    .action(async (flags: ConnectionFlags) => {
      const connection = await connect(flags, { alone: false });
      const health = v.parse(Health, await (await connection.request('/health')).json());
      if (flags.json) return screen.json({ url: connection.url, ...health });
      const rows = [
        ['server', connection.url ?? ''],
        ['state', health.state],
        ['model', health.active_model],
        ['device', health.device],
        ...(health.reason ? [['reason', health.reason]] : []),
      ];
      screen.line(table(rows));
    });
}
