/**
 * Reports why audio was not decoded. `too_large`: the recording is longer than `MOST_SECONDS`. `undecodable`: any other
 * reason, which `message` names.
 */
export class AudioFault extends Error {
  readonly kind: 'undecodable' | 'too_large';

  constructor(kind: 'undecodable' | 'too_large', message: string) {
    super(message);
    this.kind = kind;
  }
}
