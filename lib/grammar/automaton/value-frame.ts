import { LIMITS } from '../limits.ts';
import type { Alternative, Node } from '../resolve/node.ts';
import { ArrayFrame } from './array-frame.ts';
import type { Automaton } from './automaton.ts';
import { BYTE, Frame, idOf, isNumeric } from './frame.ts';
import { LiteralFrame, literalTexts } from './literal-frame.ts';
import { NumberFrame } from './number-frame.ts';
import { ObjectFrame } from './object-frame.ts';
import { stringFrame } from './string-frame.ts';

/** A value that is about to begin. */
export class ValueFrame extends Frame {
  readonly node: Node;
  /** What may begin here: written, and not too deep. */
  private readonly alternatives: readonly Alternative[];

  /** @param after what goes on behind the value */
  constructor(automaton: Automaton, node: Node, after: Frame, depth: number) {
    super(automaton, after, depth);
    this.node = node;
    this.alternatives = node.alternatives.filter(
      ({ size, height }) => size < Infinity && depth + height <= LIMITS.answerDepth,
    );
  }

  static at(node: Node, after: Frame, depth: number): ValueFrame {
    const { automaton } = after;
    return automaton.frame(`v${idOf(node)},${after.id}`, () => new ValueFrame(automaton, node, after, depth));
  }

  override step(byte: number, into: Frame[]): void {
    const after = this.parent!;
    for (const alternative of this.alternatives) {
      switch (alternative.kind) {
        case 'literals':
          LiteralFrame.first(literalTexts(alternative), after).step(byte, into);
          break;
        case 'string':
          if (byte === BYTE.quote) into.push(stringFrame(alternative.language, after));
          break;
        case 'number':
          if (isNumeric(byte)) NumberFrame.first(alternative.language, after).step(byte, into);
          break;
        case 'object':
          if (byte === BYTE.openObject) into.push(ObjectFrame.first(alternative, after, this.depth + 1));
          break;
        default:
          if (byte === BYTE.openList) into.push(ArrayFrame.first(alternative, after, this.depth + 1));
      }
    }
  }

  override forced(): number {
    const first = new Set(this.alternatives.map((alternative) => this.forcedBy(alternative)));
    return first.size === 1 ? [...first][0]! : -1;
  }

  private forcedBy(alternative: Alternative): number {
    switch (alternative.kind) {
      case 'literals':
        return LiteralFrame.first(literalTexts(alternative), this.parent!).forced();
      case 'string':
        return BYTE.quote;
      case 'number':
        return NumberFrame.first(alternative.language, this.parent!).forced();
      case 'object':
        return BYTE.openObject;
      default:
        return BYTE.openList;
    }
  }
}

/** Whether a value can be written at this depth. */
export function canStand(node: Node, depth: number): boolean {
  return node.size < Infinity && depth + node.height <= LIMITS.answerDepth;
}
