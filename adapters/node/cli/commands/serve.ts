import { type Command, Option } from 'commander';
import { hubEnvironment } from '../../../../runtime/store/environment.ts';
import { KEY_HELP } from '../../api-key.ts';
import type { compose as composeParts } from '../../compose.ts';
import { LOG_LEVELS, SETTING_NAMES, serverConfig } from '../../config.ts';
import { givenServerFlags, serverOption } from '../parse-flags.ts';
import { stopSignal } from '../stop-signal.ts';

/**
 * Adds the command `assay serve`. `compose` creates the server's parts, and is passed in because importing them takes
 * long.
 */
export function addServe(program: Command, compose: typeof composeParts): void {
  const command = program
    .command('serve')
    .description('Run the server: the decision service and the model server on one port.');
  for (const name of SETTING_NAMES) {
    command.addOption(serverOption(name));
    if (name === 'apiKey') command.option('--api-key-file <path>', KEY_HELP.file);
  }
  command
    .addOption(
      new Option('--log-level <level>', 'lowest level of the messages that are logged to standard error')
        .choices(LOG_LEVELS)
        .default('info'),
    )
    .addHelpText('after', EXAMPLES)
    .action(async ({ logLevel }: { logLevel: (typeof LOG_LEVELS)[number] }) => {
      const stopped = stopSignal();
      const [{ serve }, { createLog }] = await Promise.all([import('../../serve.ts'), import('../../log.ts')]);
      const config = serverConfig(givenServerFlags(command), process.env);
      const terminal = process.stdout.isTTY === true;
      const ask = terminal && process.stdin.isTTY ? { ask: { key: nextKey, online } } : {};
      const effects = { log: createLog(logLevel), say: console.log, terminal, ...ask, compose };
      const serving = await serve(config, effects);
      const signal = await stopped;
      console.log('Stopping; requests in flight may finish. Press Ctrl-C again to stop at once.');
      const inTime = await serving.stop({ balanced: signal === 'SIGTERM' });
      if (!inTime) console.log('Some requests took too long and were ended. Give them more time with --drain-seconds.');
      process.exit(0);
    });
}

const EXAMPLES = `
Examples:
  $ assay serve
  $ assay serve --port 18080 --home /tmp/demo --api-key-file key.txt
  $ assay serve --model org/decider --model onnx-community/Qwen3-0.6B-ONNX --memory 8GB
  $ assay serve --host 0.0.0.0 --model onnx-community/Qwen3-0.6B-ONNX`;

/** Resolves to the next key that is pressed. Ctrl-C, which the terminal then sends as a key, stops the server. */
function nextKey(): Promise<string> {
  const { stdin } = process;
  return new Promise((resolve) => {
    stdin.setRawMode(true);
    stdin.resume();
    stdin.once('data', (data) => {
      stdin.setRawMode(false);
      stdin.pause();
      const key = data.toString();
      if (key === CTRL_C) process.kill(process.pid, 'SIGINT');
      resolve(key);
    });
  });
}

const CTRL_C = '\u0003';
/** Milliseconds in which a hub must answer to count as reachable. */
const HUB_MS = 3000;

/** Tells whether the hub that the environment names answers. */
async function online(): Promise<boolean> {
  const { endpoint, offline } = hubEnvironment();
  if (offline) return false;
  const signal = AbortSignal.timeout(HUB_MS);
  return fetch(endpoint, { method: 'HEAD', signal }).then(
    () => true,
    () => false,
  );
}
