# frozen_string_literal: true

require 'assay'
require 'minitest/autorun'
require 'tempfile'

class MediaTest < Minitest::Test
  IMAGES = {
    "\xFF\xD8\xFF\xE0" => 'image/jpeg', "\x89PNG\r\n\x1A\n....." => 'image/png',
    'RIFF....WEBPVP8 ' => 'image/webp', 'GIF89a' => 'image/gif'
  }.freeze
  RECORDINGS = {
    'RIFF....WAVEfmt ' => 'audio/wav', 'fLaC' => 'audio/flac', 'OggS' => 'audio/ogg', "ID3\x04" => 'audio/mpeg',
    "\xFF\xFB\x90\x00" => 'audio/mpeg'
  }.freeze
  # AAC in ADTS begins like MP3, but its header names another layer.
  OTHERS = ['', '<svg/>', 'BM', "\xFF", "\xFF\xF1\x50\x80", '....ftypM4A '].freeze

  def test_images_are_sent_as_base64_with_the_type_of_their_first_bytes
    IMAGES.each { |bytes, type| assert_sent(bytes, type, :image_input) }
  end

  def test_recordings_are_sent_as_base64_with_the_type_of_their_first_bytes
    RECORDINGS.each { |bytes, type| assert_sent(bytes, type, :audio_input) }
  end

  def test_other_formats_are_refused_before_they_are_sent
    (OTHERS + RECORDINGS.keys).each { |bytes| refuse(bytes, :image_input) }
    (OTHERS + IMAGES.keys).each { |bytes| refuse(bytes, :audio_input) }
  end

  private

  def assert_sent(bytes, type, helper)
    with_file(bytes) do |path|
      sent = Assay.public_send(helper, path).to_hash
      assert_equal({ type: 'base64', mime_type: type, data: [bytes.b].pack('m0') }, sent)
    end
  end

  def refuse(bytes, helper)
    with_file(bytes) { |path| assert_raises(Assay::Error) { Assay.public_send(helper, path) } }
  end

  def with_file(bytes)
    Tempfile.create('assay') do |file|
      file.binmode.write(bytes)
      file.close
      yield file.path
    end
  end
end
