import type { Alternative, Node } from '../resolve/node.ts';
import type { QuotedTexts } from '../text/quoted-texts.ts';
import type { StringLanguage } from '../text/string-language.ts';
import { ArrayFrame } from './array-frame.ts';
import { BYTE, canBeWritten, type Frame, idOf, isNumeric, OpenFrame, single } from './frame.ts';
import { LiteralFrame, literalsOf } from './literal-frame.ts';
import { NumberFrame } from './number-frame.ts';
import { ObjectFrame } from './object-frame.ts';
import { type StringFrame, stringFrame } from './string-frame.ts';
import { VerbatimFrame } from './verbatim-frame.ts';

/** Reads the first byte of a value. */
export class ValueFrame extends OpenFrame {
  readonly node: Node;
  /** The alternatives that can be written here, given the depth. */
  readonly #alternatives: readonly Alternative[];

  /** @param after continues when the value has ended */
  constructor(node: Node, after: Frame, depth: number) {
    super(after, depth);
    this.node = node;
    this.#alternatives = node.alternatives.filter(
      (alternative) => canBeWritten(alternative, depth) && canBeQuoted(alternative, after.table.quoted),
    );
  }

  /**
   * Returns the key under which the `FrameTable` caches the frame of a value. The depth is not part of it, because
   * `after` determines the depth.
   */
  static key(node: Node, after: Frame): string {
    return `v${idOf(node)},${after.id}`;
  }

  override step(byte: number, into: Frame[]): void {
    const { after } = this;
    for (const alternative of this.#alternatives) {
      switch (alternative.kind) {
        case 'literals':
          LiteralFrame.of(literalsOf(alternative).texts, after).step(byte, into);
          break;
        case 'string':
          if (byte === BYTE.quote) into.push(stringIn(alternative.language, after));
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
    return single(new Set(this.#alternatives.map((alternative) => this.#forcedBy(alternative))));
  }

  #forcedBy(alternative: Alternative): number {
    switch (alternative.kind) {
      case 'literals':
        return LiteralFrame.of(literalsOf(alternative).texts, this.after).forced();
      case 'string':
        return BYTE.quote;
      case 'number':
        return NumberFrame.first(alternative.language, this.after).forced();
      case 'object':
        return BYTE.openObject;
      default:
        return BYTE.openList;
    }
  }
}

/** Tells whether there is a text for a string that must be quoted. */
function canBeQuoted(alternative: Alternative, quoted: QuotedTexts | null): boolean {
  if (!quoted || alternative.kind !== 'string' || alternative.language.dfa) return true;
  return quoted.beginningsOf(alternative.language.min).length > 0;
}

function stringIn(language: StringLanguage, after: Frame): StringFrame {
  const { quoted } = after.table;
  return quoted && !language.dfa ? VerbatimFrame.first(quoted, language, after) : stringFrame(language, after);
}
