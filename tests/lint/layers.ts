import { dirname, join } from 'node:path/posix';

/**
 * The imports that the files of one folder may have: folders or files of this repository, and packages (`node:*` for
 * Node's modules).
 */
interface Layer {
  folder: string;
  imports: readonly string[];
  /** Absent: any package. */
  packages?: readonly string[];
}

/**
 * The layers. The longest folder that contains a file decides; a folder may import itself. Tests may import anything.
 */
const LAYERS: readonly Layer[] = [
  { folder: 'lib', imports: [], packages: ['valibot', '@valibot/to-json-schema', 'leven'] },
  { folder: 'lib/openapi/write.ts', imports: ['lib', 'handlers'] },
  // A library of its own: it knows neither tasks nor requests.
  {
    folder: 'lib/grammar',
    imports: [
      'lib/at.ts',
      'lib/errors.ts',
      'lib/contract/answer-shape.ts',
      'lib/param-path.ts',
      'lib/nearest-name.ts',
      'lib/json/property.ts',
    ],
    packages: [],
  },
  { folder: 'handlers', imports: ['lib'], packages: ['hono', 'valibot'] },
  // Lower layers first; runtime/README.md prints this table.
  runtime('onnx'),
  runtime('process'),
  runtime('ort-plugin'),
  // These two files of `graph/` tell from a configuration whether a graph can be written for a checkpoint.
  runtime(
    'store',
    'contracts/encoder-contracts.ts',
    'contracts/published-files.ts',
    'graph/encoder-graph.ts',
    'graph/families.ts',
  ),
  runtime('hub', 'contracts', 'store'),
  runtime('plugins', 'hub', 'store'),
  runtime('device', 'ort-plugin', 'plugins', 'process'),
  runtime('text', 'store'),
  // How decision models are asked and read: found by files for the server, used by the engine process.
  runtime('contracts', 'checkpoint', 'onnx', 'store', 'text'),
  // Shared by the server, the media process and the engine process; pixels and samples, no model.
  runtime('media', 'process/end-with-parent.ts', 'store'),
  // Reads the weights of published checkpoints, and writes graphs that compute with them.
  runtime('checkpoint', 'onnx'),
  runtime('graph', 'checkpoint', 'contracts/contract.ts', 'contracts/encoder-contracts.ts', 'onnx'),
  runtime('compile', 'checkpoint', 'contracts', 'graph', 'onnx', 'store', 'text'),
  runtime('engine', 'compile', 'onnx', 'ort-plugin'),
  // Encoder models: no KV cache, and each request's rows in batches.
  runtime('encoder', 'contracts', 'compile', 'onnx', 'text', 'engine/model.ts'),
  // The messages between the server and the engine process, and the two sides: neither can reach into the other.
  runtime(
    'protocol',
    'compile',
    'contracts/encoder-contracts.ts',
    'media/media-plan.ts',
    'ort-plugin/plugin-target.ts',
  ),
  // `engine/cache/kv-shape.ts` tells the size of the KV cache, from which the limits of the process follow.
  runtime(
    'supervisor',
    'protocol',
    'compile',
    'device',
    'media',
    'process',
    'store',
    'encoder/contracts/span-shape.ts',
    'engine/cache/kv-shape.ts',
    'hub/public-address.ts',
    'ort-plugin/plugin-target.ts',
  ),
  runtime(
    'registry',
    'supervisor',
    'protocol',
    'contracts',
    'compile',
    'device',
    'hub',
    'store',
    'ort-plugin/plugin-target.ts',
  ),
  runtime(
    'worker',
    'process/end-with-parent.ts',
    'protocol',
    'contracts',
    'engine',
    'encoder',
    'contracts',
    'text',
    'media',
    'compile',
    'device',
    'onnx',
    'ort-plugin',
    'plugins',
    'store',
    'checkpoint',
    'graph',
  ),
  { folder: 'adapters/node', imports: ['lib', 'handlers', 'runtime'] },
  {
    folder: 'adapters/workers',
    imports: ['lib', 'handlers'],
    packages: ['hono', 'valibot', 'eventsource-parser', 'cloudflare:workers'],
  },
  { folder: 'adapters/workers/dev', imports: ['lib', 'adapters/workers'] },
  { folder: 'examples', imports: [] },
  { folder: 'clients', imports: ['lib', 'handlers', 'adapters', 'tests'] },
  {
    folder: 'tests',
    imports: ['lib', 'handlers', 'runtime', 'adapters', 'examples', 'benchmarks', 'release', 'package.json'],
  },
  { folder: 'benchmarks', imports: ['lib', 'handlers', 'runtime', 'adapters', 'tests'] },
];

/** Returns the layer of a folder of `runtime/`, which may import `lib/` and these other folders of `runtime/`. */
function runtime(folder: string, ...others: string[]): Layer {
  return { folder: `runtime/${folder}`, imports: ['lib', ...others.map((other) => `runtime/${other}`)] };
}

/** An import statement, a re-export, or an `import()`. */
const IMPORT = /^(?:import|export)\s(?:[^;'"]*?\sfrom\s)?'([^'\n]+)'|\bimport\('([^'\n]+)'\)/gm;

/**
 * Returns the imports of a file that its layer does not allow, each with the reason. Test files and fixtures may import
 * anything.
 */
export function layerViolations(file: string, source: string): string[] {
  const layer = layerOf(file);
  if (!layer || /\.(test|fixture)\.ts$/.test(file)) return [];
  return [...source.matchAll(IMPORT)].flatMap((match) => {
    const specifier = match[1] ?? match[2] ?? '';
    return allows(layer, file, specifier) ? [] : [`${file}: ${layer.folder}/ may not import ${specifier}`];
  });
}

function layerOf(file: string): Layer | undefined {
  return LAYERS.filter(({ folder }) => isIn(folder, file)).sort((a, b) => b.folder.length - a.folder.length)[0];
}

function allows({ folder, imports, packages }: Layer, file: string, specifier: string): boolean {
  if (!specifier.startsWith('.')) return !packages || packages.some((name) => packageIs(name, specifier));
  const target = join(dirname(file), specifier);
  return [folder, ...imports].some((allowed) => isIn(allowed, target));
}

function isIn(folder: string, file: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

function packageIs(name: string, specifier: string): boolean {
  return specifier === name || specifier.startsWith(`${name}/`);
}
