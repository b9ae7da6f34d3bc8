import { messageOf } from '../../lib/errors.ts';
import { parseModelId } from '../../lib/model-id.ts';
import type { ModelHost } from '../../lib/models/host.ts';
import { downloadBytes, modelFor, type RecommendedModel } from '../../lib/models/recommended-models.ts';
import { VERSION } from '../../lib/version.ts';
import { COMMAND, shellWord } from './command.ts';
import type { ServerConfig } from './config.ts';

/* Writes what a server tells the person who started it, and asks whether to load a larger model. */

/** Returns the message that a server shows once it listens: its URL, its web pages and the folder of its files. */
export function listening(url: string, { home }: Pick<ServerConfig, 'home'>): string {
  return `Assay ${VERSION} listens on ${url}\nPlayground: ${url}/playground, API reference: ${url}/docs\nModels and keys are kept in ${home}. Stop with Ctrl-C.`;
}

/**
 * Returns the message that shows the secret of the first key, which is not stored. Print it only on a terminal: any
 * other output may be kept as a log.
 */
export function firstKeyMade(secret: string): string {
  return [
    '',
    'This is your API key. It is shown only once, because only its hash is kept. Paste the key into the playground, and this line into the terminal that you send requests from:',
    `  export ASSAY_API_KEY=${secret}`,
    '',
  ].join('\n');
}

/** Returns the message for a server that has no key and creates none, because its output is not a terminal. */
export function noKeyYet(home: string): string {
  const command = `keys add my-key --admin --home ${shellWord(home)}`;
  return [
    'There is no API key yet, and the server makes none, because this output is not a terminal and could be a log. Make a key:',
    `  ${COMMAND} ${command}`,
    'The running server accepts it at once. Or start with a key of your own: --api-key-file or ASSAY_API_KEY.',
  ].join('\n');
}

/**
 * Returns a message that recommends larger models than the bundled one, for a machine with `totalMemory` bytes of
 * memory: a decision model, and one that also extracts and chats; null if none fits.
 */
export function nextModel(totalMemory: number): string | null {
  const wanted = [
    ['decisions', modelFor(totalMemory, 'decisions')],
    ['all tasks', modelFor(totalMemory, 'extraction')],
  ] as const;
  const lines = wanted.flatMap(([what, model]) => {
    if (!model) return [];
    const size = (downloadBytes(model) / 1e9).toFixed(1);
    const facts = `${what}: ${size} GB to download, ${model.licence}`;
    return [`  ${COMMAND} pull ${model.id} && ${COMMAND} load ${model.id}    # ${facts}`];
  });
  if (lines.length === 0) return null;
  return `The bundled model is small and often wrong. For real work on this machine (${COMMAND} models lists more):\n${lines.join('\n')}\n`;
}

/** Returns a message with an example request: a curl command for a shell in which `ASSAY_API_KEY` is set. */
export function firstRequest(url: string, model: string): string {
  const body = {
    model,
    context: 'The parcel came two weeks late and the mug was broken. I want my money back.',
    tasks: [
      { type: 'decide', name: 'refund', question: 'Does the customer ask for a refund?', options: ['yes', 'no'] },
      {
        type: 'extract',
        name: 'facts',
        instruction: 'What was broken, and how late was it?',
        keys: ['broken_item', 'delay'],
      },
    ],
    max_output_tokens: 64,
  };
  return [
    '',
    'Try it:',
    `  curl ${url}/v1/tasks \\`,
    '    -H "Authorization: Bearer $ASSAY_API_KEY" \\',
    "    -H 'Content-Type: application/json' \\",
    `    -d '${JSON.stringify(body)}'`,
    '',
  ].join('\n');
}

/** Asks the person at the terminal that a server was started from. */
export interface Terminal {
  /** Resolves to the next key that is pressed. */
  key(): Promise<string>;
  /** Tells whether the hub answers, so that a download can succeed. */
  online(): Promise<boolean>;
}

/** Key that accepts the offer. */
const ACCEPT = 'd';

/**
 * Offers a model to the person at the terminal, for one key; if it is pressed, downloads and loads the model. Without a
 * network it says nothing. Never rejects: a failure is said.
 */
export async function offerModel(
  model: RecommendedModel,
  { key, online }: Terminal,
  { host, say }: { host: Pick<ModelHost, 'download' | 'load'>; say(text: string): void },
): Promise<void> {
  const id = parseModelId(model.id);
  const facts = `${(downloadBytes(model) / 1e9).toFixed(1)} GB, ${model.licence}`;
  try {
    if (!(await online())) return;
    say(`Press ${ACCEPT} to download and load ${id} (${facts}); any other key leaves it.`);
    if ((await key()).toLowerCase() !== ACCEPT) return;
    let tenths = 0;
    for await (const event of host.download(id, { allowDownload: true })) {
      if (event.type !== 'progress' || event.stage !== 'downloading' || !event.total) continue;
      const done = Math.floor((10 * event.bytes) / event.total);
      if (done > tenths) say(`${id}: ${10 * done}% downloaded`);
      tenths = Math.max(tenths, done);
    }
    // The bundled model stays: a decision model extracts nothing and does not chat.
    const { load_ms } = await host.load(id, { keepOthers: true, evict: true });
    say(`${id} is loaded after ${(load_ms / 1000).toFixed(1)} s, beside the others: requests may name it.`);
  } catch (error) {
    say(`${id} is not loaded. ${messageOf(error)}`);
  }
}
