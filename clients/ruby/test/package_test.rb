# frozen_string_literal: true

require 'assay'
require 'digest'
require 'minitest/autorun'

class PackageTest < Minitest::Test
  def test_what_the_package_was_made_from
    contract = File.join(__dir__, '..', '..', '..', 'openapi.json')
    assert_equal Digest::SHA256.file(contract).hexdigest, Assay::CONTRACT_FINGERPRINT
    assert_equal Gem.loaded_specs.fetch('assay-client').version.to_s, Assay::CONTRACT_VERSION
  end

  def test_the_package_has_the_licence
    licence = File.join(__dir__, '..', '..', '..', 'LICENSE')
    assert_equal File.read(licence), File.read(File.join(Gem.loaded_specs.fetch('assay-client').full_gem_path, 'LICENSE'))
  end

  def test_without_a_key_nothing_is_sent
    ENV.delete('ASSAY_API_KEY')
    error = assert_raises(Assay::Error) { Assay::Client.new }
    assert_includes error.message, 'ASSAY_API_KEY'
  end

  def test_a_base_url_needs_its_scheme
    error = assert_raises(Assay::Error) { Assay::Client.new(base_url: '127.0.0.1:8080', api_key: 'k') }
    assert_includes error.message, 'is no base URL'
  end

  def test_a_misspelt_field_is_told_at_once
    assert_raises(ArgumentError) { Assay::DecideTask.new(name: 'a', qestion: '?') }
  end

  def test_tasks_match_on_their_class
    task = Assay::ExtractTask.new(name: 'a', instruction: '!')
    found = case task
            when Assay::DecideTask then task.question
            when Assay::ExtractTask then task.instruction
            end
    assert_equal ['!', 'extract'], [found, task.type]
  end
end
