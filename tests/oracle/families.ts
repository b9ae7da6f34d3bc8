import type { Manifest } from '../../runtime/compile/manifest.ts';

/** Makers of graphs, which decide their layout; the columns of the support table. Checkpoints have no graph. */
export const EXPORTERS = {
  'families/safetensors': 'safetensors',
  'families/genai': 'onnxruntime-genai 0.18',
  'models/genai': 'onnxruntime-genai 0.11',
  'families/mobius': 'mobius 0.1',
  optimum: 'Optimum (onnx-community)',
} as const;

export interface FamilyCase {
  family: string;
  /** Folder under `tests/fixtures`. */
  fixture: string;
  path: Manifest['path'];
  /** Tokens up to which a text is short for a model with two sets of rotary tables (LongRoPE). */
  shortText?: number;
}

/** Every tested family, in each layout that its exporters produce. */
export const FAMILIES: readonly FamilyCase[] = [
  { family: 'Gemma 4 (12B)', fixture: 'families/safetensors/gemma4', path: 'packed' },
  { family: 'Gemma 4 (E2B, E4B)', fixture: 'families/safetensors/gemma4-e2b', path: 'packed' },
  { family: 'GPT-OSS (mixture of experts)', fixture: 'families/safetensors/gpt-oss', path: 'packed' },
  { family: 'LFM2, LFM2.5', fixture: 'families/safetensors/lfm2', path: 'packed' },
  { family: 'LFM2, LFM2.5', fixture: 'families/safetensors/lfm2-biases', path: 'packed' },
  { family: 'LFM2.5 (mixture of experts)', fixture: 'families/safetensors/lfm2-moe', path: 'packed' },
  { family: 'Qwen 3 (mixture of experts)', fixture: 'families/safetensors/qwen3-moe', path: 'packed' },
  { family: 'Qwen 3 (mixture of experts)', fixture: 'families/safetensors/qwen3-moe-normalised', path: 'packed' },
  { family: 'Qwen 3.5', fixture: 'families/safetensors/qwen3.5', path: 'packed' },
  { family: 'Qwen 3.5', fixture: 'families/safetensors/qwen3.5-text', path: 'packed' },
  { family: 'Falcon 3', fixture: 'families/safetensors/falcon3', path: 'packed' },
  { family: 'Gemma 2', fixture: 'families/safetensors/gemma2', path: 'packed' },
  { family: 'Gemma 3', fixture: 'families/safetensors/gemma3', path: 'packed' },
  { family: 'Gemma 3', fixture: 'families/safetensors/gemma3-images', path: 'packed' },
  { family: 'Granite 3', fixture: 'families/safetensors/granite3', path: 'packed' },
  { family: 'Granite 4 (dense)', fixture: 'families/safetensors/granite4', path: 'packed' },
  { family: 'Granite 4 (dense)', fixture: 'families/safetensors/granite4-unrotated', path: 'packed' },
  { family: 'Llama 3.x', fixture: 'families/safetensors/llama3', path: 'packed' },
  { family: 'Llama 3.x', fixture: 'families/safetensors/llama-biases', path: 'packed' },
  { family: 'Ministral 3', fixture: 'families/safetensors/ministral3', path: 'packed' },
  { family: 'Mistral, Ministral', fixture: 'families/safetensors/mistral', path: 'packed' },
  { family: 'Mistral, Ministral', fixture: 'families/safetensors/mistral-images', path: 'packed' },
  { family: 'Mistral, Ministral', fixture: 'families/safetensors/ministral', path: 'packed' },
  { family: 'OLMo 2', fixture: 'families/safetensors/olmo2', path: 'packed' },
  { family: 'OLMo 3', fixture: 'families/safetensors/olmo3', path: 'packed' },
  { family: 'Phi-3', fixture: 'families/safetensors/phi3', path: 'packed' },
  { family: 'Qwen 2, 2.5', fixture: 'families/safetensors/qwen2', path: 'packed' },
  { family: 'Qwen 2, 2.5', fixture: 'families/safetensors/qwen2-windows', path: 'packed' },
  { family: 'Qwen 3', fixture: 'families/safetensors/qwen3', path: 'packed' },
  { family: 'Qwen 3', fixture: 'families/safetensors/qwen3-yarn', path: 'packed' },
  { family: 'SmolLM2', fixture: 'families/safetensors/smollm2', path: 'packed' },
  { family: 'SmolLM3', fixture: 'families/safetensors/smollm3', path: 'packed' },
  { family: 'Phi-4-mini', fixture: 'families/safetensors/phi4-mini', path: 'packed', shortText: 64 },
  { family: 'Falcon 3', fixture: 'families/genai/falcon3', path: 'packed' },
  { family: 'Falcon 3', fixture: 'families/optimum/falcon3', path: 'packed' },
  { family: 'Gemma 2', fixture: 'families/genai/gemma2', path: 'packed' },
  { family: 'Gemma 2', fixture: 'families/optimum/gemma2', path: 'packed' },
  { family: 'Gemma 3', fixture: 'models/genai/gemma3', path: 'packed' },
  { family: 'Gemma 3', fixture: 'models/optimum/gemma3', path: 'packed' },
  { family: 'Gemma 4 (12B)', fixture: 'families/genai/gemma4', path: 'packed' },
  { family: 'Gemma 4 (E2B, E4B)', fixture: 'families/mobius/gemma4', path: 'packed' },
  { family: 'GPT-OSS (mixture of experts)', fixture: 'families/genai/gpt-oss', path: 'packed' },
  { family: 'Granite 3', fixture: 'families/genai/granite3', path: 'packed' },
  { family: 'Granite 3', fixture: 'families/optimum/granite3', path: 'packed' },
  { family: 'Granite 4 (dense)', fixture: 'families/genai/granite4', path: 'packed' },
  { family: 'LFM2, LFM2.5', fixture: 'families/genai/lfm2', path: 'packed' },
  { family: 'LFM2.5 (mixture of experts)', fixture: 'families/genai/lfm2-moe', path: 'packed' },
  { family: 'Llama 3.x', fixture: 'families/genai/llama3', path: 'packed' },
  { family: 'Llama 3.x', fixture: 'models/genai/llama', path: 'packed' },
  { family: 'Llama 3.x', fixture: 'families/optimum/llama3', path: 'packed' },
  { family: 'Ministral 3', fixture: 'families/mobius/ministral3', path: 'packed' },
  { family: 'Mistral, Ministral', fixture: 'families/genai/mistral', path: 'packed' },
  { family: 'Mistral, Ministral', fixture: 'families/optimum/mistral', path: 'packed' },
  { family: 'Nemotron', fixture: 'families/genai/nemotron', path: 'packed' },
  { family: 'Nemotron', fixture: 'families/optimum/nemotron', path: 'plain' },
  { family: 'OLMo 2', fixture: 'families/optimum/olmo2', path: 'packed' },
  { family: 'OLMo 3', fixture: 'families/mobius/olmo3', path: 'packed' },
  { family: 'Phi-3', fixture: 'families/genai/phi3', path: 'packed' },
  { family: 'Phi-3', fixture: 'models/genai/phi3', path: 'packed' },
  { family: 'Phi-3', fixture: 'models/optimum/phi3', path: 'packed' },
  { family: 'Phi-4-mini', fixture: 'families/genai/phi4-mini', path: 'packed', shortText: 64 },
  { family: 'Qwen 2, 2.5', fixture: 'families/genai/qwen2', path: 'packed' },
  { family: 'Qwen 2, 2.5', fixture: 'models/genai/qwen2', path: 'packed' },
  { family: 'Qwen 2, 2.5', fixture: 'models/genai/qwen2-fp16', path: 'packed' },
  { family: 'Qwen 2, 2.5', fixture: 'models/optimum/qwen2', path: 'packed' },
  { family: 'Qwen 3', fixture: 'families/genai/qwen3', path: 'packed' },
  { family: 'Qwen 3', fixture: 'models/genai/qwen3', path: 'packed' },
  { family: 'Qwen 3', fixture: 'models/optimum/qwen3', path: 'packed' },
  { family: 'Qwen 3 (mixture of experts)', fixture: 'families/mobius/qwen3-moe', path: 'packed' },
  { family: 'Qwen 3 (mixture of experts)', fixture: 'families/optimum/qwen3-moe', path: 'packed' },
  { family: 'Qwen 3.5', fixture: 'families/genai/qwen3.5', path: 'packed' },
  { family: 'SmolLM2', fixture: 'models/genai/smollm2', path: 'packed' },
  { family: 'SmolLM2', fixture: 'models/optimum/smollm2', path: 'packed' },
  { family: 'SmolLM3', fixture: 'families/mobius/smollm3', path: 'packed' },
  { family: 'SmolLM3', fixture: 'models/optimum/smollm3', path: 'packed' },
];

/** Returns the support table of `docs/models.md`, in Markdown. */
export function supportTable(): string {
  const columns = Object.entries(EXPORTERS);
  const families = [...new Set(FAMILIES.map(({ family }) => family))].sort((one, other) =>
    one.localeCompare(other, 'en'),
  );
  const rows = families.map((family) => {
    const cells = columns.map(([folder]) => {
      const found = FAMILIES.find((one) => one.family === family && one.fixture.includes(folder));
      return found?.path ?? '';
    });
    return `| ${[family, ...cells].join(' | ')} |`;
  });
  const head = ['family', ...columns.map(([, name]) => name)];
  return [`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...rows].join('\n');
}
