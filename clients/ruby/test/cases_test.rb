# frozen_string_literal: true

# Runs the cases of clients/cases.json. ASSAY_CASES_URL and ASSAY_STARTER_URL come from `npm run clients`.
require 'assay'
require 'json'
require 'minitest/autorun'
require 'net/http'
require_relative 'matching'

class CasesTest < Minitest::Test
  CASES = JSON.parse(File.read(File.join(__dir__, '..', '..', 'cases.json'), encoding: 'UTF-8')).fetch('cases')
  CASES_URL = ENV.fetch('ASSAY_CASES_URL')
  URLS = { 'starter' => ENV.fetch('ASSAY_STARTER_URL'), 'none' => 'http://127.0.0.1:9' }.freeze
  KINDS = {
    'bad_request' => Assay::BadRequestError,
    'authentication' => Assay::AuthenticationError,
    'permission' => Assay::PermissionDeniedError,
    'unprocessable' => Assay::UnprocessableEntityError,
    'rate_limit' => Assay::RateLimitError,
    'server' => Assay::ServerError,
    'not_found' => Assay::StatusError,
    'other' => Assay::StatusError,
    'timeout' => Assay::TimeoutError,
    'connection' => Assay::ConnectionError
  }.freeze

  REQUESTS = {
    'run_tasks' => Assay::RunTasksRequest,
    'decide_extract' => Assay::RunTasksRequest,
    'decide' => Assay::DecideRequest,
    'extract' => Assay::ExtractRequest,
    'decisions' => Assay::DecisionsRequest,
    'system_one' => Assay::SystemOneRequest,
    'rerank' => Assay::RerankRequest
  }.freeze

  CASES.each do |one|
    define_method("test_#{one['id']}") { play(one) }
  end

  private

  def play(one)
    expect = one['expect']
    seen(one)
    begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    if expect['error']
      check_error(expect['error']) { call(one) }
    else
      check_response(call(one), expect)
    end
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun, :>=, expect.fetch('at_least_seconds', 0)
    check_seen(seen(one), expect)
  end

  def call(one)
    settings = (one['client'] || {}).transform_keys { |name| name == 'timeout_seconds' ? :timeout : name.to_sym }
    url = URLS.fetch(one['server'], "#{CASES_URL}/cases/#{one['id']}")
    client = Assay::Client.new(base_url: url, api_key: 'demo', **settings)
    client.public_send(one['call'], **typed(REQUESTS.fetch(one['call']), one['request']))
  end

  # Builds the arguments as a user would: tasks as classes, and unknown fields in `extra_body`.
  def typed(type, request)
    classes = { 'decide' => Assay::DecideTask, 'extract' => Assay::ExtractTask }
    tasks = request['tasks']&.map { |task| classes.fetch(task['type']).new(task.reject { |name, _| name == 'type' }) }
    fields = request.merge(tasks ? { 'tasks' => tasks } : {}).transform_keys(&:to_sym)
    known, extra = fields.partition { |name, _| type.attribute_map.key?(name) }.map(&:to_h)
    extra.empty? ? known : { **known, extra_body: extra }
  end

  def check_error(expected)
    error = assert_raises(Assay::Error) { yield }
    assert_instance_of KINDS.fetch(expected['kind']), error
    assert_includes error.message, expected['message'] if expected['message']
    expected.reject { |name, _| %w[kind message].include?(name) }.each do |name, value|
      found = error.public_send(name)
      value.nil? ? assert_nil(found, name) : assert_equal(value, found, name)
    end
    assert error.request_id if error.is_a?(Assay::StatusError) && error.code
  end

  def check_response(response, expect)
    json = JSON.parse(JSON.generate(response.to_hash))
    assert matches(json, expect.fetch('response', {})), json.inspect
    return unless response.respond_to?(:choices)

    return assert_same(response, Assay.ensure_complete(response)) unless expect['incomplete']

    error = assert_raises(Assay::IncompleteError) { Assay.ensure_complete(response) }
    assert_equal expect['incomplete'], error.finish_reason
    assert_same response, error.response
  end

  def check_seen(told, expect)
    assert_equal expect['attempts'], told['attempts'] if expect['attempts']
    assert matches(told['sent'], expect['sent']), told['sent'].inspect if expect['sent']
  end

  def seen(one)
    JSON.parse(Net::HTTP.get(URI("#{CASES_URL}/seen/#{one['id']}")))
  end
end
