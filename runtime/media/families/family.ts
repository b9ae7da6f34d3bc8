import type { MelPlan } from '../media-plan.ts';
import type { PixelPlan } from '../pixel-plan.ts';

export interface Size {
  width: number;
  height: number;
}

/**
 * Tells how many tokens the model uses for an image. `low`: as few as the model allows; `high`: as many as the model's
 * makers use.
 */
export type Detail = 'low' | 'high';

/** Describes how one image is prepared for the encoder, and represented in the prompt. */
export interface ImageLayout {
  plan: PixelPlan;
  /**
   * Text that replaces `ImageFamily.mark` in the prompt. It contains the token `ImageFamily.token` once for each
   * feature.
   */
  text: string;
  /** Number of features of the image, each of which is one token of the prompt. */
  tokens: number;
  /**
   * Number of features in a row of the image, if the decoder uses their row and column as positions
   * (`engine/forward/rotary-positions.ts`). Absent if it positions them in sequence, like text.
   */
  columns?: number;
}

/** Describes an input tensor of a media encoder. */
export interface EncoderInput {
  name: string;
  type: 'float32' | 'bool' | 'int64';
  data: Float32Array | Uint8Array | BigInt64Array;
  dims: readonly number[];
}

/** Holds everything that differs between the families of models that read images. */
export interface ImageFamily {
  kind: 'image';
  /** Text that the chat template writes for an image. */
  mark: string;
  /** Id of the token that represents one feature. */
  token: number;
  /** Names of the inputs that `inputs` returns; an encoder may lack some of them. */
  inputNames: readonly string[];
  /** Name of the encoder's output, whose shape is `[tiles, tokens of a tile, width]` or `[tokens, width]`. */
  output: string;
  /** True if the decoder also takes features of inner layers: the outputs `deepstack_features_0` and so on. */
  deepstack?: boolean;
  /** Largest accepted ratio of an image's longer side to its shorter one; absent if any shape is accepted. */
  mostAspect?: number;
  layout(size: Size, detail: Detail): ImageLayout;
  /** Returns the encoder's inputs for one tile, given as three bytes for each pixel. */
  inputs(pixels: Uint8Array, tile: Size): readonly EncoderInput[];
  /** Returns how many of the features that the encoder gives for a tile are used. Absent: all. */
  used?(tile: Size): number;
}

/**
 * Describes how one recording is prepared for the encoder, and represented in the prompt. The members have the same
 * meaning as in `ImageLayout`.
 */
export interface AudioLayout {
  plan: MelPlan;
  text: string;
  tokens: number;
}

/**
 * Holds everything that differs between the families of models that read audio. Members without a comment have the same
 * meaning as in `ImageFamily`.
 */
export interface AudioFamily {
  kind: 'audio';
  mark: string;
  /** True if the mark is part of the message's text, because the chat template accepts only text. */
  inText?: boolean;
  token: number;
  inputNames: readonly string[];
  output: string;
  /** Returns the layout of a recording with this many samples at 16 kHz. */
  layout(samples: number): AudioLayout;
  /** Returns the encoder's inputs for one chunk of log-mel values, given as bytes of 32-bit floats. */
  inputs(chunk: Uint8Array): readonly EncoderInput[];
  /** Returns how many of the features that the encoder gives for a chunk are used. Absent: all. */
  used?(chunk: Uint8Array): number;
}

export type MediaFamily = ImageFamily | AudioFamily;
export type MediaLayout = ImageLayout | AudioLayout;
