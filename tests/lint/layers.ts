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
  { folder: 'lib/openapi/write.ts', imports: ['lib'] },
  // A library of its own: it knows neither tasks nor requests.
  {
    folder: 'lib/grammar',
    imports: ['lib/errors.ts', 'lib/answer-shape.ts', 'lib/param-path.ts', 'lib/loop-detector.ts'],
    packages: [],
  },
  { folder: 'handlers', imports: ['lib'], packages: ['hono', 'valibot'] },
  { folder: 'runtime', imports: ['lib'] },
  { folder: 'runtime/onnx', imports: ['lib'] },
  { folder: 'runtime/ort-plugin', imports: ['lib'] },
  { folder: 'runtime/engine', imports: ['lib', 'runtime/compile', 'runtime/onnx', 'runtime/ort-plugin'] },
  // The messages between the server and the engine process, and the two sides: neither can reach into the other.
  { folder: 'runtime/protocol', imports: ['lib', 'runtime/compile', 'runtime/ort-plugin/plugin-target.ts'] },
  {
    folder: 'runtime/supervisor',
    imports: [
      ...['lib', 'runtime/protocol', 'runtime/device'],
      // Sizes, from which the bounds of a process follow.
      ...['runtime/compile/manifest.ts', 'runtime/engine/sequence.ts', 'runtime/store/bounded-file.ts'],
    ],
  },
  {
    folder: 'runtime/worker',
    imports: [
      'lib',
      ...['protocol', 'engine', 'compile', 'text', 'device', 'onnx', 'ort-plugin'].map((part) => `runtime/${part}`),
    ],
  },
  { folder: 'adapters/node', imports: ['lib', 'handlers', 'runtime'] },
  {
    folder: 'adapters/workers',
    imports: ['lib', 'handlers'],
    packages: ['hono', 'valibot', 'eventsource-parser', 'cloudflare:workers'],
  },
  { folder: 'adapters/workers/dev', imports: ['lib', 'adapters/workers'] },
  { folder: 'examples', imports: [] },
  { folder: 'clients', imports: ['lib', 'handlers', 'adapters', 'tests'] },
  { folder: 'tests', imports: ['lib', 'handlers', 'runtime', 'adapters', 'examples', 'benchmarks', 'package.json'] },
  { folder: 'benchmarks', imports: ['lib', 'handlers', 'runtime', 'adapters', 'tests'] },
];

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
