import { at } from '../../../lib/at.ts';
import {
  attribute,
  DataType,
  type Graph,
  makeNode,
  makeTensor,
  type OnnxModel,
  type OnnxNode,
} from '../format/model.ts';
import type { GraphLayout, StateTensor } from '../layout.ts';
import { unusable } from '../unusable.ts';

/**
 * Names the inputs that arrange the rows of a run in lanes for recurrent layers. A lane is one path of new tokens that
 * follow each other (`engine/forward/state-feeds.ts`).
 */
export interface LaneInputs {
  /** `[lanes]`: index, among the given states, of the state with which each lane begins. */
  roots: string;
  /** `[lanes, steps]`: row number of the run at each step of each lane; any row after the end of a lane. */
  cells: string;
  /** `[lanes, steps, 1]`: 1 at the steps of a lane, 0 after its end. */
  live: string;
  /** `[rows]`: for each row of the run, its index in the flattened `[lanes, steps]`. */
  places: string;
  /** `[kept]`: indices of the lanes whose final states are returned. */
  kept: string;
  /**
   * `[kept, 1, width]`: for each kept lane, the indices of its last `width` inputs, in the list of its initial state
   * followed by its own rows. There is one such input for each width of a convolution.
   */
  windows: { name: string; width: number }[];
}

const MS = 'com.microsoft';
/** Index of the state among the inputs, and among the outputs, of both supported operators. */
const PAST_INPUT = 3;
const PRESENT_OUTPUT = 1;

/**
 * Rewrites a graph so that one run computes the tokens of several branches in recurrent layers (CausalConvWithState,
 * LinearAttention). A mask cannot hide a branch there, so rows are arranged in lanes before such an operator, one for
 * each path through the tree of new tokens, and put back in order after it. All other operators still compute one
 * sequence. Returns the names of the new inputs; undefined if the model has no recurrent layers. Throws `engine_failed`
 * if another operator reads or writes a state. Source: onnxruntime, docs/ContribOperators.md,
 * com.microsoft.CausalConvWithState and com.microsoft.LinearAttention.
 */
export function packStates(model: OnnxModel, layout: GraphLayout): LaneInputs | undefined {
  if (layout.states.length === 0) return undefined;
  const { graph } = model;
  const lanes: LaneInputs = {
    roots: 'lane_roots',
    cells: 'lane_cells',
    live: 'lane_live',
    places: 'lane_places',
    kept: 'lane_kept',
    windows: [],
  };
  const constants = constantsOf(graph);
  for (const state of layout.states) {
    const node = stateNode(graph, state);
    const build = new Rewrite(node, state, lanes, constants);
    graph.nodes.splice(
      graph.nodes.indexOf(node),
      1,
      ...(isConvolution(node) ? build.convolution() : build.recurrence()),
    );
    for (const info of graph.inputs) if (info.name === state.past) info.dims = ['roots', ...state.dims];
    for (const info of graph.outputs) if (info.name === state.present) info.dims = ['kept', ...state.dims];
  }
  const integers = (name: string, ...dims: (string | number)[]) =>
    graph.inputs.push({ name, dataType: DataType.int64, dims });
  integers(lanes.roots, 'lanes');
  integers(lanes.cells, 'lanes', 'steps');
  graph.inputs.push({ name: lanes.live, dataType: DataType.float, dims: ['lanes', 'steps', 1] });
  integers(lanes.places, 'sequence_length');
  integers(lanes.kept, 'kept');
  for (const { name, width } of lanes.windows) integers(name, 'kept', 1, width);
  return lanes;
}

function isConvolution(node: OnnxNode): boolean {
  return node.op === 'CausalConvWithState';
}

/** Returns the node that reads and writes a state. Throws `engine_failed` if its operator cannot run in lanes. */
function stateNode(graph: Graph, { past, present }: StateTensor): OnnxNode {
  const node = graph.nodes.find(({ inputs }) => inputs.includes(past));
  const fits =
    node?.domain === MS &&
    ['CausalConvWithState', 'LinearAttention'].includes(node.op) &&
    node.inputs[PAST_INPUT] === past &&
    node.outputs[PRESENT_OUTPUT] === present;
  if (!node || !fits) {
    throw unusable(
      `the state ${past} goes through ${node?.op ?? 'no operator'}, which is not supported`,
      'Try the file of another publisher.',
    );
  }
  if (attribute(node, 'state_window')) throw unusable('it returns windows of states, which is not supported');
  return node;
}

/** Rewrites one recurrent node so that it computes lanes instead of the rows of a sequence. */
class Rewrite {
  readonly #node: OnnxNode;
  readonly #state: StateTensor;
  readonly #lanes: LaneInputs;
  readonly #constant: (values: readonly number[]) => string;
  readonly #nodes: OnnxNode[] = [];

  constructor(node: OnnxNode, state: StateTensor, lanes: LaneInputs, constant: (values: readonly number[]) => string) {
    this.#node = node;
    this.#state = state;
    this.#lanes = lanes;
    this.#constant = constant;
  }

  /** Rewrites a CausalConvWithState node, with inputs `[1, channels, rows]` and a state `[lanes, channels, width]`. */
  convolution(): OnnxNode[] {
    const { cells, places, kept } = this.#lanes;
    // A cast: the operators that `stateNode` accepts require these dimensions and inputs. The same applies below.
    const [channels, width] = this.#state.dims as [number, number];
    const [input, ...rest] = this.#node.inputs as [string, ...string[]];
    const past = this.#rootStates();
    const picked = this.#add('Gather', [input, cells], 'lanes', { axis: 2 });
    const flat = this.#add('Squeeze', [picked, this.#constant([0])], 'lanes_flat');
    const rows = this.#add('Transpose', [flat], 'rows', { perm: [1, 0, 2] });
    const out = this.#run([rows, ...rest.slice(0, PAST_INPUT - 1), past]);
    // The operator's own state includes the steps after the end of a lane, so the state is gathered from the inputs
    // instead.
    const all = this.#add('Concat', [past, rows], 'inputs', { axis: 2 });
    const ends = this.#add('Gather', [all, kept], 'kept_inputs', { axis: 0 });
    const window = this.#add('Expand', [this.#window(width), this.#constant([1, channels, 1])], 'window');
    this.#add('GatherElements', [ends, window], this.#state.present, { axis: 2 });
    const back = this.#add('Transpose', [out], 'channels', { perm: [1, 0, 2] });
    const line = this.#add('Reshape', [back, this.#constant([1, channels, -1])], 'line');
    this.#add('Gather', [line, places], at(this.#node.outputs, 0), { axis: 2 });
    return this.#nodes;
  }

  /**
   * Rewrites a LinearAttention node, with query, key, value, decay and beta `[1, rows, width]` each and a state
   * `[lanes, heads, key size, value size]`. Steps after the end of a lane must not change the state: they get the decay
   * 0 and the beta 0, or the key 0 if there is no beta.
   */
  recurrence(): OnnxNode[] {
    const { cells, places, kept } = this.#lanes;
    const [query, key, value, , decay, beta] = this.#node.inputs as [string, string, string, string, string?, string?];
    const lane = (name: string | undefined, what: string) => {
      if (!name) return '';
      const picked = this.#add('Gather', [name, cells], `${what}_lanes`, { axis: 1 });
      return this.#add('Squeeze', [picked, this.#constant([0])], what);
    };
    const live = (name: string, what: string) =>
      name ? this.#add('Mul', [name, this.#lanes.live], `${what}_live`) : '';
    const keys = lane(key, 'key');
    const inputs = [
      lane(query, 'query'),
      beta ? keys : live(keys, 'key'),
      lane(value, 'value'),
      this.#rootStates(),
      live(lane(decay, 'decay'), 'decay'),
      live(lane(beta, 'beta'), 'beta'),
    ];
    while (inputs.at(-1) === '') inputs.pop();
    const out = this.#run(inputs);
    this.#add('Gather', [`${this.#prefix}/state`, kept], this.#state.present, { axis: 0 });
    const line = this.#add('Reshape', [out, this.#constant([1, -1, 0])], 'line');
    this.#add('Gather', [line, places], at(this.#node.outputs, 0), { axis: 1 });
    return this.#nodes;
  }

  get #prefix(): string {
    return `assay/${this.#state.past}`;
  }

  #rootStates(): string {
    return this.#add('Gather', [this.#state.past, this.#lanes.roots], 'roots', { axis: 0 });
  }

  #run(inputs: string[]): string {
    const outputs = [`${this.#prefix}/out`, `${this.#prefix}/state`];
    this.#nodes.push({ ...this.#node, inputs, outputs });
    return at(outputs, 0);
  }

  #window(width: number): string {
    const name = `lane_windows_${width}`;
    if (!this.#lanes.windows.some((one) => one.name === name)) this.#lanes.windows.push({ name, width });
    return name;
  }

  /**
   * Adds a node and returns the name of its output.
   *
   * @param result name of an output of the original node, or a name to be used only in this rewrite
   */
  #add(op: string, inputs: string[], result: string, attributes: Parameters<typeof makeNode>[3] = {}): string {
    const given = result === this.#state.present || result === this.#node.outputs[0];
    const output = given ? result : `${this.#prefix}/${result}`;
    this.#nodes.push(makeNode(op, inputs, [output], attributes));
    return output;
  }
}

/**
 * Returns a function that adds a constant list of integers to the graph and returns its name; equal lists share a
 * constant.
 */
function constantsOf(graph: Graph): (values: readonly number[]) => string {
  return (values) => {
    const name = `assay/integers/${values.join(',')}`;
    if (!graph.initializers.has(name)) {
      graph.initializers.set(name, makeTensor(name, [values.length], BigInt64Array.from(values, BigInt)));
    }
    return name;
  };
}
