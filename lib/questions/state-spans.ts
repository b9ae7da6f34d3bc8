import type { FieldProbability } from '../backend.ts';
import { evidenceOf, indexIn, type SourceText, type SpanUnit } from './evidence.ts';

/** Locates a part of the state by its first index and the index after its end. */
export type Span = [start: number, end: number];

/** Finds values in the text of a state, in code points or in UTF-16 code units. */
export class StateSpans {
  readonly source: SourceText;
  readonly unit: SpanUnit;
  private numbers: { start: number; end: number; values: readonly number[] }[] | undefined;

  constructor(text: string, unit: SpanUnit) {
    this.source = { source: '/state', text };
    this.unit = unit;
  }

  /** Returns the span of a text, a whole word if there is one; null if the state does not contain it. */
  ofText(value: string): Span | null {
    const found = evidenceOf(value, '', [this.source], { unit: this.unit });
    return found && [found.start, found.end];
  }

  /** Returns the span of the first number with this value, however it is written; null if there is none. */
  ofNumber(value: number): Span | null {
    this.numbers ??= Array.from(this.source.text.matchAll(/[-−]?\d(?:[\d.,'\u00a0\u202f ]*\d)?/g), (match) => ({
      start: match.index,
      end: match.index + match[0].length,
      values: readings(match[0]),
    }));
    const found = this.numbers.find(({ values }) => values.includes(value));
    // A hyphen before a number may be part of a name or range, so a positive number begins after it.
    const unsigned = this.numbers.find(({ values }) => values.includes(-value));
    if (found) return this.span(found.start, found.end);
    return unsigned && value > 0 ? this.span(unsigned.start + 1, unsigned.end) : null;
  }

  /** Returns the span that a value is known to have; null if it is not known. */
  ofEvidence(field: Pick<FieldProbability, 'evidence'> | undefined): Span | null {
    return field?.evidence ? this.span(field.evidence.start, field.evidence.end) : null;
  }

  private span(start: number, end: number): Span {
    return [indexIn(this.source, start, this.unit), indexIn(this.source, end, this.unit)];
  }
}

/** Returns the values that a number in a text may have: `1.234,50` and `1,234.50` are both 1234.5. */
function readings(written: string): number[] {
  const plain = written.replace('−', '-').replaceAll(/['\u00a0\u202f ]/g, '');
  const english = Number(plain.replaceAll(',', ''));
  const continental = Number(plain.replaceAll('.', '').replace(',', '.'));
  return [english, continental].filter((value) => !Number.isNaN(value));
}
