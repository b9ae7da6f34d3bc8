import { at } from '../../../lib/at.ts';
import { DataType, type Graph, makeNode, type OnnxModel, type OnnxNode } from '../format/model.ts';
import { type GraphLayout, LOGIT_ROWS } from '../layout.ts';

/** Operators that may follow the head's MatMul: a bias, a scale, soft capping, a cast. Each computes row by row. */
const ELEMENTWISE = ['Add', 'Sub', 'Mul', 'Div', 'Tanh', 'Cast', 'Identity'];
const PRODUCTS = ['MatMul', 'MatMulNBits', 'FusedMatMul'];

/**
 * Adds a `Gather` of the requested rows before the output head, the largest matrix of small models, so that a prefill
 * computes one row of logits instead of all. Returns the name of the input of row numbers, which a graph that is
 * written here has already. Returns undefined and leaves the graph unchanged if the head is not found.
 */
export function gatherRows({ graph }: OnnxModel, layout: GraphLayout): string | undefined {
  if (graph.inputs.some(({ name }) => name === LOGIT_ROWS)) return LOGIT_ROWS;
  const head = findHead(graph, layout.logits);
  if (!head) return undefined;
  const [input = '', ...weights] = head.inputs;
  const gathered = `assay/read_rows/${input}`;
  head.inputs = [gathered, ...weights];
  graph.nodes.splice(graph.nodes.indexOf(head), 0, makeNode('Gather', [input, LOGIT_ROWS], [gathered], { axis: 1 }));
  graph.inputs.push({ name: LOGIT_ROWS, dataType: DataType.int64, dims: ['read_rows'] });
  const logits = graph.outputs.find((output) => output.name === layout.logits)!;
  logits.dims = [logits.dims[0] ?? 'batch_size', 'read_rows', layout.vocabSize];
  return LOGIT_ROWS;
}

/** Returns the MatMul of the output head, found by walking back from the logits; undefined if there is none. */
function findHead(graph: Graph, logits: string): OnnxNode | undefined {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  const constant = constants(graph);
  let name = logits;
  for (let steps = 0; steps < 16; steps++) {
    const node = producers.get(name);
    if (!node) return undefined;
    if (PRODUCTS.includes(node.op))
      return node.inputs.slice(1).every((input) => !input || constant(input)) ? node : undefined;
    const changing = node.inputs.filter((input) => input && !constant(input));
    if (!ELEMENTWISE.includes(node.op) || changing.length !== 1) return undefined;
    name = at(changing, 0);
  }
  return undefined;
}

/** Returns a function that tells whether the value with a given name is constant, the same in every run. */
function constants(graph: Graph): (name: string) => boolean {
  const producers = new Map(graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node])));
  return function isConstant(name: string): boolean {
    if (graph.initializers.has(name)) return true;
    const node = producers.get(name);
    if (!node) return false;
    return (
      node.op === 'Constant' || (['Transpose', 'Cast', 'Reshape'].includes(node.op) && node.inputs.every(isConstant))
    );
  };
}
