import { afterAll, beforeAll, expect, it } from 'vitest';
import { HubServer } from '../hub/hub-server.ts';
import { type HubRepository, hubRepository } from '../hub/repository.ts';
import { newBase, type ServerProcess, startServer } from '../model-server/server.ts';
import { fixtureModel } from '../registry/machine.ts';
import { mediaFile } from './golden.ts';

/* A model in the layout of onnxruntime-genai, whose graphs all have one name, as callers of a real server see it. */

const [MODEL, TEXT_ONLY] = ['acme/qwen-vl', 'acme/qwen3-vl'];
const KEY = 'demo';
const FOLDER = 'cpu-fp32/';

let hub: HubServer;
let server: ServerProcess;
let published: HubRepository;
beforeAll(async () => {
  const made = await fixtureModel('../media/genai-qwen2.5-vl', MODEL);
  const filesOf = (edit: (path: string, content: Buffer) => Buffer | string) =>
    Object.fromEntries(made.files.map(({ path, content }) => [FOLDER + path, edit(path, content)]));
  published = hubRepository(
    MODEL,
    filesOf((_, content) => content),
  );
  // mobius gives Qwen3-VL the type of Qwen2.5-VL, and leaves out what its images need.
  const newer = (path: string, content: Buffer) =>
    path === 'processor_config.json' ? content.toString().replaceAll('"patch_size": 14', '"patch_size": 16') : content;
  hub = await HubServer.start(published, hubRepository(TEXT_ONLY, filesOf(newer)));
  server = await startServer(hub, await newBase(), ['--no-load', '--api-key', KEY]);
}, 120_000);
afterAll(async () => {
  await server?.stop();
  await hub?.stop();
});

const post = (path: string, body: object) => server.call('POST', path, body, { authorization: `Bearer ${KEY}` });
const QUESTION = { question: 'Is it?', options: ['yes', 'no'] };
const imageOf = (file: string) => {
  const { data, mimeType } = mediaFile(file);
  return { type: 'base64', data, mime_type: mimeType };
};

it('is pulled, loaded, and answers about images', async () => {
  expect((await post('/download', { model: MODEL })).status).toBe(200);
  for (const { path } of published.files) expect(hub.bytesSent(path)).toBeGreaterThan(0);
  expect((await post('/load', { model: MODEL })).status).toBe(200);
  const ask = (body: object) => post('/decide', { model: MODEL, context: '', ...QUESTION, ...body });
  const [text, wide, large] = [{}, { images: [imageOf('wide.png')] }, { images: [imageOf('large.png')] }];
  const answers = [];
  for (const body of [text, wide, large]) answers.push(await ask(body));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const tokens = answers.map(({ body }) => (body as { usage: { prompt_tokens: number } }).usage.prompt_tokens);
  // With the tokens before and after it: 4 × 2 squares of 28 pixels, and 23 × 15.
  expect(tokens.map((count) => count - tokens[0]!)).toEqual([0, 10, 347]);
});

it('without the deepstack features of Qwen3-VL, it is pulled without its encoder, and refuses images', async () => {
  const encoder = `${FOLDER}vision_encoder/model.onnx`;
  const before = hub.bytesSent(encoder);
  expect((await post('/download', { model: TEXT_ONLY })).status).toBe(200);
  expect(hub.bytesSent(encoder)).toBe(before);
  expect((await post('/load', { model: TEXT_ONLY })).status).toBe(200);
  expect((await post('/decide', { model: TEXT_ONLY, context: 'a cat', ...QUESTION })).status).toBe(200);
  const refused = await post('/decide', { model: TEXT_ONLY, context: '', ...QUESTION, images: [imageOf('wide.png')] });
  expect(refused).toMatchObject({
    status: 422,
    body: { error: { code: 'unsupported_modality', message: expect.stringMatching(/deepstack/) } },
  });
});
