import { describe, expect, test } from 'vitest';
import { assertionViolation, countAssertions } from './assertions.ts';
import { commentViolations } from './comments.ts';
import { sizeViolation } from './file-size.ts';
import { layerViolations } from './layers.ts';
import { ExportedNames } from './names.ts';

describe('layers', () => {
  test.each([
    ['lib/clock.ts', "import { readFile } from 'node:fs/promises';"],
    ['lib/clock.ts', "import type { AppDeps } from '../handlers/context.ts';"],
    ['lib/chat/request.ts', "export { Hono } from 'hono';"],
    ['lib/grammar/limits.ts', "import { answerShape } from '../decision/answer-shape.ts';"],
    ['handlers/chat.ts', "import type { Engine } from '../runtime/engine/engine.ts';"],
    ['handlers/chat.ts', "const { serve } = await import('../adapters/node/serve.ts');"],
    ['runtime/onnx/read.ts', "import {\n  type Engine,\n} from '../engine/engine.ts';"],
    ['runtime/supervisor/supervisor.ts', "import { Engine } from '../engine/engine.ts';"],
    ['runtime/worker/engine-child.ts', "import { HostedModel } from '../registry/hosted-model.ts';"],
    ['runtime/registry/hosted-model.ts', "import { createApp } from '../../handlers/app.ts';"],
    ['adapters/workers/edge.ts', "import { serve } from '../node/serve.ts';"],
    ['adapters/workers/edge.ts', "import { Worker } from 'node:worker_threads';"],
    ['adapters/node/serve.ts', "import { createEdge } from '../workers/edge.ts';"],
    ['runtime/store/paths.ts', "import { startHub } from '../../tests/hub/pull.ts';"],
    ['examples/node/server.ts', "import { createApp } from '../../handlers/app.ts';"],
  ])('%s: %s is refused', (file, source) => {
    expect(layerViolations(file, source)).toHaveLength(1);
  });

  test.each([
    ['lib/tasks/batch.ts', "import type { Call } from '../backend.ts';\nimport * as v from 'valibot';"],
    ['handlers/chat.ts', "import { streamSSE } from 'hono/streaming';"],
    ['runtime/worker/engine-child.ts', "import { Engine } from '../engine/engine.ts';\nimport fs from 'node:fs';"],
    ['lib/grammar/limits.test.ts', "import { answerShape } from '../decision/answer-shape.ts';"],
    ['benchmarks/edge/bench.ts', "import { startEdge } from '../../tests/edge/edge.ts';"],
  ])('%s: %s is allowed', (file, source) => {
    expect(layerViolations(file, source)).toEqual([]);
  });
});

describe('comments', () => {
  const long = 'x'.repeat(120);
  test.each([
    ['a line comment', `const a = 1; // ${long}`],
    ['a doc comment', `/** Returns ${long}. */`],
    ['a line inside a block', `/*\n * ${long}\n */`],
    ['What', '/** What a caller sees. */'],
    ['Whether, on the second line', '/**\n * Whether it may run.\n */'],
    ['How, of a member', 'interface A {\n  /** How many there are. */\n  count: number;\n}'],
    ['a noun, of a function', '/** The number of cells. */\nexport async function count(): number {}'],
    ['a plural, of a type', '/**\n * Flags of all commands.\n */\nexport interface Flags {}'],
    ['a parameter alone, of a method', 'class A {\n  /** @param from included */\n  private count(from: number) {}\n}'],
  ])('%s is refused', (_, source) => {
    expect(commentViolations('a.ts', source)).toHaveLength(1);
  });

  test.each([
    ['a long line of code', `const url = 'https://example.test/${long}';`],
    ['a verb', '/** Returns what a caller sees. */'],
    ['a noun, of a constant or a getter', '/** Cells in use. */\nconst cells = 1;\n/** Cells. */\n  get cells() {}'],
    ['a question in a plain comment', '// How many there are decides.'],
    ['a later sentence', '/**\n * Returns the id.\n *\n * Which one it is depends.\n */'],
  ])('%s is allowed', (_, source) => {
    expect(commentViolations('a.ts', source)).toEqual([]);
  });
});

describe('non-null assertions', () => {
  test.each([
    ['lib/a.ts', 'const a = list[0]!.name;\nconst b = map.get(a)!;', 2],
    ['lib/a.ts', "// Stop!\nconst a = !b && c !== d ? `no!` : 'yes!';", 0],
    ['tests/a.ts', 'const a = list[0]!;', 0],
    ['lib/a.test.ts', 'const a = list[0]!;', 0],
  ])('%s: %s has %i', (file, source, count) => expect(countAssertions(file, source)).toBe(count));

  test('more than the limit are refused', () => {
    expect(assertionViolation(1_000)).toHaveLength(1);
    expect(assertionViolation(0)).toEqual([]);
  });
});

test.each([
  [['lib/a.ts', 'runtime/b.ts'], 1],
  [['lib/a.ts', 'adapters/playground/b.tsx'], 1],
  [['lib/schema/a.ts', 'lib/schema/b.ts'], 1],
  [['lib/schema/a.ts', 'lib/contract/b.ts'], 0],
  [['lib/schema/a.ts', 'lib/contract/b.ts', 'lib/c.ts'], 1],
  [['lib/a.ts', 'lib/a.test.ts', 'tests/b.ts'], 0],
])('one name exported by %j: %i faults', (files, count) => {
  const names = new ExportedNames();
  for (const file of files) names.add(file, 'export interface Row {}\nexport async function row() {}');
  expect(names.violations()).toHaveLength(2 * count);
});

test('a schema and its type share a name', () => {
  const names = new ExportedNames();
  names.add('lib/a.ts', 'export const Row = v.object({});\nexport type Row = v.InferOutput<typeof Row>;');
  expect(names.violations()).toEqual([]);
});

test('a file over 1 MB is refused, but for those that are listed', () => {
  expect(sizeViolation('docs/video.mp4', 1_000_001)).toHaveLength(1);
  expect(sizeViolation('docs/image.svg', 1_000_000)).toEqual([]);
  expect(sizeViolation('models/starter/onnx/model_q4f16.onnx', 16_166_335)).toEqual([]);
});
