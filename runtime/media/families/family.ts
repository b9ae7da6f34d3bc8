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
}

/** Describes an input of an encoder. */
export interface EncoderInput {
  name: string;
  type: 'float32' | 'bool';
  data: Float32Array | Uint8Array;
  dims: readonly number[];
}

/** Holds what differs between families of models that read images. */
export interface ImageFamily {
  kind: 'image';
  /** Text that the chat template writes for an image. */
  mark: string;
  /** Token id that represents one feature. */
  token: number;
  /** Output of the encoder, `[tiles, tokens of a tile, width]`. */
  output: string;
  layout(size: Size, detail: Detail): ImageLayout;
  /** Returns the encoder's inputs for one tile of `side` × `side` pixels. */
  inputs(tile: Uint8Array, side: number): readonly EncoderInput[];
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
