import { expect, test } from 'vitest';
import { DataType, type Graph, makeNode, makeTensor, type ValueInfo } from './model.ts';
import { makeIf, prune } from './subgraph.ts';

test('keeps what a branch of an If reads from the graph around it, and removes the rest', () => {
  const info = (name: string): ValueInfo => ({ name, dataType: DataType.float, dims: [1] });
  const weight = (name: string) => [name, makeTensor(name, [1], Float32Array.of(1))] as const;
  const graph: Graph = {
    nodes: [
      makeNode('Neg', ['read weight'], ['read']),
      makeNode('Neg', ['other weight'], ['not read']),
      makeIf('condition', ['y'], {
        whenTrue: { nodes: [makeNode('Add', ['x', 'read'], ['a'])], outputs: [info('a')] },
        whenFalse: {
          nodes: [
            makeIf('condition', ['b'], {
              whenTrue: { nodes: [makeNode('Add', ['x', 'inner weight'], ['c'])], outputs: [info('c')] },
              whenFalse: { nodes: [makeNode('Neg', ['x'], ['d'])], outputs: [info('d')] },
            }),
          ],
          outputs: [info('b')],
        },
      }),
    ],
    initializers: new Map(['read weight', 'other weight', 'inner weight'].map(weight)),
    inputs: [info('x')],
    outputs: [info('y')],
    rest: [],
  };
  prune(graph);
  expect(graph.nodes.map(({ outputs }) => outputs[0])).toEqual(['read', 'y']);
  expect([...graph.initializers.keys()]).toEqual(['read weight', 'inner weight']);
});
