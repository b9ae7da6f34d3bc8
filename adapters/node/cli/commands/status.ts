import type { Command } from 'commander';
import * as v from 'valibot';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import { EdgeHealth, Health } from '../../../../lib/schema/status.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { screen, table } from '../screen.ts';

/** Adds the command `assay status`. */
export function addStatus(program: Command): void {
  connectionFlags(program.command('status').description('Show whether a server is running, and which model is loaded.'))
    .addHelpText('after', '\nExit code 3: no server is running.\n\nExample:\n  $ assay status --json | jq -r .state')
    .action(async (flags: ConnectionFlags) => {
      const connection = await connect(flags, { alone: false });
      const health = v.parse(v.union([EdgeHealth, Health]), await (await connection.request('/health')).json());
      if (flags.json) return screen.json({ url: connection.url, ...health });
      screen.line(table([['server', connection.url ?? ''], ...('boxes' in health ? ofBoxes(health) : ofSlot(health))]));
    });
}

function ofSlot({
  state,
  active_model,
  device,
  reason,
  max_prompt_len: length,
  precision,
  precision_reason: why,
  devices = [],
  models = [],
  memory_bytes: used = 0,
  memory_limit_bytes: limit,
}: Health): string[][] {
  return [
    ['state', state],
    ['model', active_model],
    ['device', device],
    ...(length ? [['prompts', `up to ${length} tokens`]] : []),
    ...(precision ? [['precision', why ? `${precision}: ${why}` : precision]] : []),
    ...(reason ? [['reason', reason]] : []),
    ...models.slice(1).map((other) => ['also', `${other.id}: ${other.reason ?? other.state} on the ${other.device}`]),
    ...(limit ? [['memory', `${formatBytes(used)} of ${formatBytes(limit)} for models`]] : []),
    ...devices.map((tried) => [tried.used ? 'used' : 'not used', `${tried.device}: ${tried.reason}`]),
  ];
}

function ofBoxes({ status, state, device, active_model, boxes }: EdgeHealth): string[][] {
  return [
    ['boxes', `${boxes}: ${status}`],
    ['state', state],
    ['model', active_model],
    ['device', device ?? 'not known yet'],
  ];
}
