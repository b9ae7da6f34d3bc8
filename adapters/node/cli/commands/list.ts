import type { Command } from 'commander';
import * as v from 'valibot';
import { ModelList } from '../../../../lib/schema/model-list.ts';
import { COMMAND } from '../../command.ts';
import { type ConnectionFlags, connect, connectionFlags } from '../connection.ts';
import { screen, table } from '../screen.ts';

/** Adds the command `assay list`. */
export function addList(program: Command): void {
  connectionFlags(program.command('list').alias('ls').description('List the models of this machine with their status.'))
    .addHelpText('after', LIST_HELP)
    .action(async (flags: ConnectionFlags) => {
      const connection = await connect(flags, { alone: true });
      try {
        const list = v.parse(ModelList, await (await connection.request('/v1/models')).json());
        if (flags.json) screen.json(list);
        else if (list.data.length === 0)
          screen.line(`There are no models on this machine. Fetch one: ${COMMAND} pull onnx-community/Qwen3-0.6B-ONNX`);
        else screen.line(table([['MODEL', 'STATUS'], ...list.data.map(({ id, status }) => [id, status])]));
      } finally {
        await connection.close();
      }
    });
}

const LIST_HELP = `
active       loaded, answers requests
compiled     ready to load
downloaded   on this machine; compiled when it is loaded
available    ships with Assay; compiled when it is loaded

Example:
  $ assay list --json | jq -r '.data[].id'`;
