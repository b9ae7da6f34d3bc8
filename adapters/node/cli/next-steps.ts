import { totalmem } from 'node:os';
import * as v from 'valibot';
import { modelFor } from '../../../lib/catalogue/recommended-models.ts';
import { EdgeHealth, Health } from '../../../lib/schema/status.ts';
import { VERSION } from '../../../lib/version.ts';
import { COMMAND } from '../command.ts';
import { type ConnectionFlags, connect } from './connection.ts';
import { NoServerError } from './exit-code.ts';
import { table } from './screen.ts';

/**
 * Returns the text that `assay` shows if no command is given: whether a server is running, and useful next commands.
 * Throws `UsageError` if the address of the server is invalid.
 */
export async function nextSteps(flags: ConnectionFlags = {}): Promise<string> {
  const [state, steps] = await stepsOf(flags);
  const rows = [...steps, [`${COMMAND} --help`, 'all commands, each with --help']].map(([command, why]) => [
    `  ${command}`,
    why ?? '',
  ]);
  return [
    `Assay ${VERSION}: many small questions about one text, answered on this machine.`,
    state,
    '',
    table(rows),
  ].join('\n');
}

const ASK = [`${COMMAND} decide "Is this urgent?" -o yes -o no -c "The server is down."`, 'answer one question'];

/** Returns the step that fetches the model recommended for this machine, if `active` is the small starter model. */
function larger(active: string): string[][] {
  const model = modelFor(totalmem(), 'decisions');
  return model && active === 'assay/starter' ? [[`${COMMAND} pull ${model.id}`, 'fetch a decision model']] : [];
}

async function stepsOf(flags: ConnectionFlags): Promise<[state: string, steps: string[][]]> {
  try {
    const connection = await connect(flags, { alone: false });
    const health = v.parse(v.union([EdgeHealth, Health]), await (await connection.request('/health')).json());
    const { active_model: model } = health;
    if ('boxes' in health) {
      return [`An edge runs at ${connection.url}.`, [ASK, [`${COMMAND} list`, 'the models of its boxes']]];
    }
    if (model === 'none') {
      return [
        `A server runs at ${connection.url}, without a model.`,
        [
          [`${COMMAND} load assay/starter`, 'load the model that ships with Assay'],
          [`${COMMAND} list`, 'the models of this machine'],
        ],
      ];
    }
    return [
      `A server runs at ${connection.url} and answers with ${model}.`,
      [
        ASK,
        [`${connection.url}/playground`, 'try it in the browser'],
        [`${COMMAND} top`, 'queue, tokens and memory of the server'],
        ...larger(model),
      ],
    ];
  } catch (error) {
    if (!(error instanceof NoServerError)) throw error;
    return [
      error.message,
      [
        [`${COMMAND} serve`, 'start the server, with a playground in the browser'],
        [ASK[0]!, 'or answer one question without a server'],
        [`${COMMAND} doctor`, 'what this machine can do'],
      ],
    ];
  }
}
