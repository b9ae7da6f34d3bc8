/** Says why audio was not decoded. `too_large`: longer than is read. */
export class AudioFault extends Error {
  readonly kind: 'undecodable' | 'too_large';

  constructor(kind: 'undecodable' | 'too_large', message: string) {
    super(message);
    this.kind = kind;
  }
}
