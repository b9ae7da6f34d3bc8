export type AudioFaultKind = 'undecodable' | 'encoding' | 'too_large' | 'too_long' | 'too_many_samples';

/**
 * Reports why audio was not decoded. `too_large`: the recording is longer than `MOST_SECONDS`. `too_long`: it is longer
 * than the loaded model can read. `too_many_samples`: all its channels have more than `MOST_SAMPLES` together.
 * `encoding`: its samples have an encoding that is not supported. `undecodable`: any other reason, which `message`
 * names.
 */
export class AudioFault extends Error {
  readonly kind: AudioFaultKind;

  constructor(kind: AudioFaultKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
