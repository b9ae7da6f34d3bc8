import { type Command, Option } from 'commander';
import { KEY_HELP } from '../../api-key.ts';
import type { compose as composeParts } from '../../compose.ts';
import { LOG_LEVELS, type ServerFlags, serverConfig } from '../../config.ts';

/**
 * Adds the command `assay serve`. `compose` creates the server's parts, and is passed in because importing them takes
 * long.
 */
export function addServe(program: Command, compose: typeof composeParts): void {
  program
    .command('serve')
    .description('Run the server: the decision service and the model server on one port.')
    .option(
      '--host <address>',
      'address to listen on; any other than loopback requires an API key (default: 127.0.0.1)',
    )
    .option('--port <number>', 'port to listen on, 0 for any free one (env: PORT, default: 8080)')
    .option('--home <folder>', 'folder with models and keys (env: ASSAY_HOME, default: ~/.assay)')
    .option(
      '--api-key <key>',
      `key to accept besides those in the home folder; ${KEY_HELP.visible} (env: ASSAY_API_KEY)`,
    )
    .option('--api-key-file <path>', KEY_HELP.file)
    .option('--model <id>', 'model to load at start (env: ASSAY_MODEL, default: assay/starter)')
    .option(
      '--device <device>',
      'auto, npu, gpu or cpu; assay doctor shows which work (env: ASSAY_DEVICE, default: auto)',
    )
    .option('--dtype <format>', 'number format of downloaded weights, such as q4 or fp16 (env: ASSAY_DTYPE)')
    .option(
      '--precision <form>',
      'weight form to compile: auto, int8, int8-blocks, int4, published, float or keep (env: ASSAY_PRECISION, default: auto)',
    )
    .option(
      '--chat-max-tokens <number>',
      'most tokens of a chat answer if the request sets no max_tokens (env: ASSAY_CHAT_MAX_TOKENS, default: 1024)',
    )
    .option(
      '--orders <number>',
      'orders in which questions with probabilities show their options, 1 to 8 (env: ASSAY_ORDERS, default: 1)',
    )
    .option(
      '--abstain-below <probability>',
      'abstain from a choice whose most probable option is below this, 0 to 1 (env: ASSAY_ABSTAIN_BELOW, default: 0)',
    )
    .option(
      '--confidence <formula>',
      'formula for the confidence of an answer: entropy or margin (env: ASSAY_CONFIDENCE, default: margin for System One, else entropy)',
    )
    .option(
      '--long-input <mode>',
      'refuse: a text that an encoder model cannot read whole is an error; windows: it is read in parts, where the model family defines that (env: ASSAY_LONG_INPUT, default: refuse)',
    )
    .option(
      '--isolation <mode>',
      'auto: every isolation layer that the system supports (see assay doctor); strict: all layers, or the server does not start; off (env: ASSAY_ISOLATION, default: auto)',
    )
    .option('--alias <name...>', 'other names for the loaded model, such as gpt-4o-mini (env: ASSAY_ALIAS)')
    .option(
      '--shutdown-delay <seconds>',
      'after SIGTERM, still take requests for this time but report not ready (env: ASSAY_SHUTDOWN_DELAY, default: 5 if something asks /health/ready, else 0)',
    )
    .option(
      '--drain-seconds <seconds>',
      'time for running requests to finish before the server ends (env: ASSAY_DRAIN_SECONDS, default: 10)',
    )
    .option(
      '--metrics-port <number>',
      'answer GET /metrics on a port of its own, without a key; 0 for any free one (env: ASSAY_METRICS_PORT, default: none)',
    )
    .option('--metrics-host <address>', 'address of that port (env: ASSAY_METRICS_HOST, default: that of --host)')
    .option(
      '--metrics-names <names>',
      'assay, or vllm: also the names that inference gateways read (env: ASSAY_METRICS_NAMES, default: assay)',
    )
    .option('--no-load', 'load no model at start')
    .option(
      '--allow-media-host <host...>',
      'hosts that images may be fetched from, such as images.example.com or *.example.com (default: none)',
    )
    .option('--allow-origin <origin...>', 'web pages that may call the server, such as http://localhost:3000')
    .addOption(
      new Option('--log-level <level>', 'lowest level of the messages that are logged to standard error')
        .choices(LOG_LEVELS)
        .default('info'),
    )
    .addHelpText('after', EXAMPLES)
    .action(async ({ logLevel, ...flags }: ServerFlags & { logLevel: (typeof LOG_LEVELS)[number] }) => {
      const [{ serve }, { createLog }] = await Promise.all([import('../../serve.ts'), import('../../log.ts')]);
      const config = serverConfig(flags, process.env);
      const terminal = process.stdout.isTTY === true;
      const serving = await serve(config, { log: createLog(logLevel), say: console.log, terminal, compose });
      const signal = await stopSignal();
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
  $ assay serve --host 0.0.0.0 --model onnx-community/Qwen3-0.6B-ONNX`;

/**
 * Milliseconds after the first signal in which a second one is ignored: npm forwards the Ctrl-C that the terminal has
 * already sent to this process.
 */
const ECHO_MS = 500;

/** Resolves to the first Ctrl-C or SIGTERM. A second one ends the process at once, with exit code 1. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first = Number.POSITIVE_INFINITY;
    const stop = (signal: NodeJS.Signals) => {
      if (performance.now() - first > ECHO_MS) process.exit(1);
      first = Math.min(first, performance.now());
      resolve(signal);
    };
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
  });
}
