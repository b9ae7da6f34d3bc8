import { readFileSync } from 'node:fs';
import type { MediaKind, Part } from '../../lib/contract/conversation.ts';
import { fixture, readFixture } from '../fixture.ts';

type GoldenPart = { type: 'text'; text: string } | { type: MediaKind; file: string };

/** The fixture models, and the token that stands for a feature of an image or a recording in their prompts. */
export const MEDIA_TOKEN = {
  smolvlm: 4,
  'qwen2-vl': 5,
  'qwen2.5-vl': 5,
  'qwen3-vl': 5,
  'genai-qwen2-vl': 5,
  'genai-qwen2.5-vl': 5,
  'genai-gemma4': 7,
  gemma4: 7,
  voxtral: 20,
  ultravox: 5,
};
export type FixtureModel = keyof typeof MEDIA_TOKEN;

/** Holds what Python says about one message (the `make` scripts in `tests/fixtures/media`). */
interface GoldenCase {
  parts: GoldenPart[];
  /** Token ids of the prompt; the image or audio token once for each feature. */
  prompt: number[];
  greedy: number[];
}

/** Returns the cases of a fixture model. */
export function goldenOf(model: FixtureModel): { cases: GoldenCase[] } {
  return JSON.parse(readFixture(`media/${model}/golden.json`));
}

const TYPES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  wav: 'audio/wav',
  flac: 'audio/flac',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
};

/** Returns an image or a recording as base64, and its type. */
export function mediaFile(file: string): { data: string; mimeType: string } {
  const mimeType = TYPES[file.split('.').at(-1)!]!;
  const folder = mimeType.startsWith('image/') ? 'images' : 'audio';
  return { data: readFileSync(fixture(`media/${folder}/${file}`)).toString('base64'), mimeType };
}

/** Returns the parts of a message as backends take them. */
export function partsOf({ parts }: GoldenCase): Part[] {
  return parts.map((part, i) =>
    part.type === 'text'
      ? part
      : { type: part.type, source: { type: 'base64', ...mediaFile(part.file) }, param: `messages[0].content[${i}]` },
  );
}
