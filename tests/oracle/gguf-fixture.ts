import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeGgufModel } from '../../benchmarks/models/gguf-model.ts';
import { Noise } from '../../benchmarks/models/noise.ts';
import { readGguf } from '../../runtime/checkpoint/gguf/read-gguf.ts';
import { ggufConfig } from '../../runtime/graph/gguf.ts';

const SHAPE = { layers: 2, hidden: 64, heads: 4, kvHeads: 2, headSize: 16, intermediate: 96, vocabulary: 512 };

/** Writes a random model to a folder as a GGUF file, with blocks that have a minimum (`q4_1`) or none. */
export function writeGgufFixture(folder: string, blocks: 'q4_0' | 'q4_1'): void {
  const file = join(folder, 'model.gguf');
  writeGgufModel(file, { ...SHAPE, context: 1024, ropeTheta: 1e4 }, blocks, new Noise(1));
  writeFileSync(join(folder, 'config.json'), JSON.stringify(ggufConfig(readGguf(file))));
}
