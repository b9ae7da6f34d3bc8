# frozen_string_literal: true

# Helpers that turn files of images and recordings into inputs of a request.
module Assay
  # Signatures of the formats that the server reads: media type, first bytes, and their offset.
  IMAGE_SIGNATURES = [
    ['image/jpeg', "\xFF\xD8\xFF".b, 0],
    ['image/png', "\x89PNG\r\n\x1A\n".b, 0],
    ['image/webp', 'WEBP'.b, 8],
    ['image/gif', 'GIF8'.b, 0]
  ].freeze
  AUDIO_SIGNATURES = [
    ['audio/wav', 'WAVE'.b, 8],
    ['audio/flac', 'fLaC'.b, 0],
    ['audio/ogg', 'OggS'.b, 0],
    ['audio/mpeg', 'ID3'.b, 0]
  ].freeze
  private_constant :IMAGE_SIGNATURES, :AUDIO_SIGNATURES

  class << self
    # Reads an image file: +images: [Assay.image_input('receipt.jpg')]+. Raises an Assay::Error for a format that the
    # server does not read.
    def image_input(path)
      data = File.binread(path)
      type = type_of(data, IMAGE_SIGNATURES)
      raise Error, "#{path} is not in a format that Assay reads. Send JPEG, PNG, WebP or GIF." unless type

      ImageInput.new(type: 'base64', mime_type: type, data: [data].pack('m0'))
    end

    # Reads a recording: +audio: [Assay.audio_input('call.mp3')]+. Raises an Assay::Error for a format that the server
    # does not read.
    def audio_input(path)
      data = File.binread(path)
      type = type_of(data, AUDIO_SIGNATURES) || ('audio/mpeg' if mp3_frame?(data))
      raise Error, "#{path} is not in a format that Assay reads. Send WAV, MP3, FLAC or Ogg." unless type

      AudioInput.new(type: 'base64', mime_type: type, data: [data].pack('m0'))
    end

    private

    def type_of(data, signatures)
      signatures.find { |_, start, at| data.byteslice(at, start.bytesize) == start }&.first
    end

    # Tells whether bytes begin with the frame header of MPEG layer III (MP3). AAC has a similar header with another
    # layer.
    def mp3_frame?(data)
      data.getbyte(0) == 0xFF && (data.getbyte(1) || 0) & 0xE6 == 0xE2
    end
  end
end
