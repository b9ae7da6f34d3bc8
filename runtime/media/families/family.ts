import type { MelPlan } from '../audio/mel-plan.ts';
import type { PixelPlan } from '../pixel-plan.ts';

export interface Size {
  width: number;
  height: number;
}

/**
 * Says how closely the model looks. `low`: as few tokens as the model allows; `high`: as many as the model's makers
 * use.
 */
export type Detail = 'low' | 'high';

/** Describes how one image is prepared, and its text in the prompt. */
export interface ImageLayout {
  plan: PixelPlan;
  /** The text that replaces `ImageFamily.mark`; it has `ImageFamily.token` once for each of the image's features. */
  text: string;
  /** Features of the image: tokens of the prompt. */
  tokens: number;
  /**
   * Features in a row of the image, if the decoder places them by row and column (`engine/rotary-positions.ts`).
   * Absent: it places them in a line, as text.
   */
  columns?: number;
}

/** Describes an input of an encoder. */
export interface EncoderInput {
  name: string;
  type: 'float32' | 'bool' | 'int64';
  data: Float32Array | Uint8Array | BigInt64Array;
  dims: readonly number[];
}

/** Holds what differs between families of models that read images. */
export interface ImageFamily {
  kind: 'image';
  /** Text that the chat template writes for an image. */
  mark: string;
  /** Token id that represents one feature. */
  token: number;
  /** Output of the encoder: `[tiles, tokens of a tile, width]`, or `[tokens, width]`. */
  output: string;
  /** Most times an image may be as long one way as the other. Absent: any shape is read. */
  mostAspect?: number;
  layout(size: Size, detail: Detail): ImageLayout;
  /** Returns the encoder's inputs for one tile: three bytes for each pixel. */
  inputs(pixels: Uint8Array, tile: Size): readonly EncoderInput[];
}

/** Describes how one recording is prepared and what stands for it in the prompt; the members are as for images. */
export interface AudioLayout {
  plan: MelPlan;
  text: string;
  tokens: number;
}

/** Holds what differs between families of models that hear recordings; the members are as for images. */
export interface AudioFamily {
  kind: 'audio';
  mark: string;
  token: number;
  output: string;
  /** Lays out a recording of this many samples at 16 kHz. */
  layout(samples: number): AudioLayout;
  /** Returns the encoder's inputs for one chunk of log-mel values. */
  inputs(chunk: Uint8Array): readonly EncoderInput[];
}

export type MediaFamily = ImageFamily | AudioFamily;
export type MediaLayout = ImageLayout | AudioLayout;
