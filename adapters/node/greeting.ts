import { VERSION } from '../../lib/version.ts';
import type { ServerConfig } from './config.ts';

/** What is said once the server listens. */
export function listening(url: string, { home }: Pick<ServerConfig, 'home'>): string {
  return `Assay ${VERSION} listens on ${url}\nModels and keys are kept in ${home}. Stop with Ctrl-C.`;
}

/** The first key, which is shown this once. */
export function firstKeyMade(secret: string): string {
  return `\nThis is your API key. It is shown this once; only its hash is kept.\n  ${secret}\n`;
}

/** A request that can be pasted into a shell. */
export function firstRequest(url: string, secret: string, model: string): string {
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
    `    -H 'Authorization: Bearer ${secret}' \\`,
    "    -H 'Content-Type: application/json' \\",
    `    -d '${JSON.stringify(body)}'`,
    '',
  ].join('\n');
}
