import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Part } from '../../lib/conversation.ts';

type GoldenPart = { type: 'text'; text: string } | { type: 'image'; file: string };

/** Holds what Python says about one message (`tests/fixtures/media/make.py`). */
interface GoldenCase {
  parts: GoldenPart[];
  /** Token ids of the prompt; the image token once for each feature. */
  prompt: number[];
  greedy: number[];
}

const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/media/${path}`, import.meta.url));

export const golden: { cases: GoldenCase[] } = JSON.parse(readFileSync(fixture('smolvlm/golden.json'), 'utf8'));

const TYPES: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', webp: 'image/webp', gif: 'image/gif' };

/** Returns a picture as base64, and its type. */
export function picture(file: string): { data: string; mimeType: string } {
  const data = readFileSync(fixture(`pictures/${file}`)).toString('base64');
  return { data, mimeType: TYPES[file.split('.').at(-1)!]! };
}

/** Returns the parts of a message as backends take them. */
export function partsOf({ parts }: GoldenCase): Part[] {
  return parts.map((part, i) =>
    part.type === 'text'
      ? part
      : { type: 'image', source: { type: 'base64', ...picture(part.file) }, param: `messages[0].content[${i}]` },
  );
}
