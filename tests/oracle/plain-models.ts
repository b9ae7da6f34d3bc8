import { InferenceSession, Tensor } from 'onnxruntime-node';
import { Sequence } from '../../runtime/engine/cache/sequence.ts';
import { type EngineModel, kvShape } from '../../runtime/engine/model.ts';
import type { PlainModel } from './oracle.ts';

/** Loads a published graph unchanged, except for the names of its inputs. */
export async function publishedModel(file: string): Promise<PlainModel> {
  const session = await InferenceSession.create(file, { logSeverityLevel: 3, intraOpNumThreads: 1 });
  const { inputNames, inputMetadata } = session;
  return {
    async logits(tokens) {
      const integers = (values: number[]) =>
        new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
      const feeds: Record<string, Tensor> = {};
      for (const [index, name] of inputNames.entries()) {
        if (name === 'input_ids') feeds[name] = integers([...tokens]);
        else if (name === 'attention_mask') feeds[name] = integers(tokens.map(() => 1));
        else if (name === 'position_ids') feeds[name] = integers(tokens.map((_, position) => position));
        else {
          const metadata = inputMetadata[index]!;
          if (!metadata.isTensor) throw new Error(`unexpected input ${name}`);
          const [, heads, , size] = metadata.shape as number[];
          feeds[name] = new Tensor('float32', new Float32Array(0), [1, heads!, 0, size!]);
        }
      }
      const { data, dims } = (await session.run(feeds, ['logits'])).logits!;
      return rowsOf(data as Float32Array, tokens.length, dims[2]!);
    },
    close: () => session.release(),
  };
}

/**
 * Loads a compiled model, for forms whose numbers differ from the published ones: a fresh sequence, all tokens at once.
 */
export function compiledModel({ manifest, forward, close }: Omit<EngineModel, 'independent'>): PlainModel {
  return {
    async logits(tokens) {
      const sequence = new Sequence(kvShape(manifest), tokens.length);
      for (const token of tokens) sequence.append(token, sequence.length - 1);
      const rows = await forward.run([{ sequence, start: 0, rows: [...tokens.keys()] }]);
      return rowsOf(rows, tokens.length, manifest.vocabSize);
    },
    close,
  };
}

function rowsOf(logits: Float32Array, rows: number, width: number): Float32Array[] {
  return Array.from({ length: rows }, (_, row) => logits.slice(row * width, (row + 1) * width));
}
