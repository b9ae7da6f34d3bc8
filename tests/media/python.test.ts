import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Part } from '../../lib/conversation.ts';
import { Engine } from '../../runtime/engine/engine.ts';
import { FIRST_MEDIA_ID } from '../../runtime/engine/media-feeds.ts';
import { kvShape, type Model, openModel } from '../../runtime/engine/model.ts';
import { decodeImage, imageSize } from '../../runtime/media/decode-image.ts';
import { readImageFamily } from '../../runtime/media/families/read-family.ts';
import { cutTiles } from '../../runtime/media/tiles.ts';
import { TEXT_FILES } from '../../runtime/store/model-files.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';
import { planChat } from '../../runtime/worker/chat-job.ts';
import { compileModel } from '../../runtime/worker/compile-model.ts';
import { featuresOf, openPictures, type Pictures } from '../../runtime/worker/pictures.ts';
import { golden, partsOf } from './golden.ts';

const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/media/${path}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'assay-media-'));
const IMAGE_TOKEN = 4;
afterAll(() => rmSync(folder, { recursive: true }));

/** The model with the decoder of either exporter: with fused attention, whose branches are packed, and without. */
const DECODERS = { packed: 'smolvlm/onnx', plain: 'smolvlm-plain' };

interface Opened {
  dir: string;
  model: Model;
  pictures: Pictures;
}

async function openVision(path: keyof typeof DECODERS): Promise<Opened> {
  const source = join(folder, `${path}-source`);
  const dir = join(folder, path);
  cpSync(fixture('smolvlm'), source, { recursive: true });
  cpSync(fixture(DECODERS[path]), join(source, 'onnx'), { recursive: true });
  await compileModel({ source, target: dir, device: 'CPU', precision: 'keep', maxPromptLen: 512 });
  for (const name of TEXT_FILES) if (existsSync(join(source, name))) copyFileSync(join(source, name), join(dir, name));
  const model = await openModel(dir, { threads: 1 });
  const { media } = model.manifest;
  const family = await readImageFamily(dir);
  if (!media || !family) throw new Error('the model reads no images');
  return { dir, model, pictures: await openPictures(dir, media, family, 1) };
}

/** Opens images as the server and its media process do. */
async function openParts(parts: readonly Part[]) {
  const files = new Map<string, Buffer>();
  const made = parts.map(async (part): Promise<Part> => {
    if (part.type === 'text' || part.source.type !== 'base64') return part;
    const bytes = Buffer.from(part.source.data, 'base64');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    files.set(sha256, bytes);
    return { ...part, opened: { sha256, ...(await imageSize(bytes)) } };
  });
  return { parts: await Promise.all(made), files };
}

describe.each(Object.keys(DECODERS) as (keyof typeof DECODERS)[])('%s', (path) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await openVision(path);
  });
  afterAll(() => opened.model.close());

  it('takes that path', () => expect(opened.model.manifest.path).toBe(path));

  it.each(golden.cases.map((one, i) => [i, one] as const))(
    'case %d: the prompt and 32 greedy tokens are those of Python',
    async (_, one) => {
      const { dir, model, pictures } = opened;
      const { parts, files } = await openParts(partsOf(one));
      const text = { ...(await loadTextModel(dir, { vocabSize: model.manifest.vocabSize })), pictures };
      const request = {
        messages: [{ role: 'user' as const, parts }],
        temperature: 0,
        stop: [],
        presencePenalty: 0,
        frequencyPenalty: 0,
        format: { type: 'text' as const },
      };
      const shown = pictures.of({ kind: 'chat', request });
      const { maxPromptLen, contextLength } = model.manifest;
      const { prefix, branches } = planChat(text, request, { maxPromptLen, contextLength }).plan(() => {});
      const [branch] = branches;
      const ids = [...prefix, ...branch!.suffix];
      expect(ids.map((id) => (id >= FIRST_MEDIA_ID ? IMAGE_TOKEN : id))).toEqual(one.prompt);

      const wanted = pictures.wanted(shown);
      const pixels = wanted.map(async ({ sha256, detail, plan }) => {
        return { sha256, detail, data: cutTiles(await decodeImage(files.get(sha256)!), plan) };
      });
      const between = <T>(work: () => Promise<T>) => work();
      await pictures.encode(shown, await Promise.all(pixels), { between, signal: new AbortController().signal });

      const kv = kvShape(model.manifest);
      const engine = new Engine({ forward: model.forward, kv, maxPromptLen, contextLength, kvBytes: 1 << 26 });
      // Python goes on behind the end token, too.
      const endless = { ...branch!, endTokens: new Set<number>(), maxTokens: 32 };
      const media = featuresOf(shown);
      const job = { id: 'a', prefix, media, branches: [endless], budget: 32, deadline: Number.POSITIVE_INFINITY };
      const result = engine.submit(job);
      while (await engine.step());
      expect((await result).branches[0]!.tokens).toEqual(one.greedy);
    },
  );
});
