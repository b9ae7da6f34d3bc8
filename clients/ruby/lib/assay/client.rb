# frozen_string_literal: true

require 'json'
require 'net/http'
require 'uri'

module Assay
  # Client of the decision service. Each call opens its own connection, so one client can be shared between threads.
  # Calls raise an Assay::Error. Each takes the fields of its request, and in +extra_body+ fields that this version
  # does not know.
  #
  #   assay = Assay::Client.new
  #   assay.decide(model: 'assay/starter', context: mail, question: 'Is it urgent?', options: %w[yes no]).value
  class Client
    DEFAULT_URL = 'http://127.0.0.1:8080'
    # Longest wait before a retry, in seconds. If the server asks for a longer one, the call fails and the caller
    # decides.
    LONGEST_WAIT = 60
    FIRST_BACKOFF = 0.5
    LONGEST_BACKOFF = 8.0

    # Creates a client. +base_url+ and +api_key+ default to ASSAY_URL and ASSAY_API_KEY of the environment. +timeout+ is
    # in seconds, for each attempt. After 429 and 5xx the request is sent again, up to +max_retries+ times.
    def initialize(base_url: nil, api_key: nil, timeout: 120, max_retries: 2)
      @base_url = (base_url || from_environment('ASSAY_URL') || DEFAULT_URL).sub(%r{/+\z}, '')
      raise Error, "#{@base_url} is no base URL. Pass one such as #{DEFAULT_URL}, or set ASSAY_URL." unless @base_url.match?(%r{\Ahttps?://})

      @api_key = api_key || from_environment('ASSAY_API_KEY')
      raise Error, 'No API key: pass api_key, or set ASSAY_API_KEY. The server prints one at its first start.' unless @api_key

      @timeout = timeout
      @max_retries = max_retries
    end

    # Answers a list of tasks about one shared context. Returns a RunTasksResponse.
    def run_tasks(extra_body: {}, **fields)
      post('/v1/tasks', RunTasksRequest.new(fields), extra_body, RunTasksResponse)
    end

    # Does the same as +run_tasks+. This is the operation's original name and path.
    def decide_extract(extra_body: {}, **fields)
      post('/v1/decide-extract', RunTasksRequest.new(fields), extra_body, RunTasksResponse)
    end

    # Answers one question, with one of the options or in the model's own words. Returns a DecideResponse.
    def decide(extra_body: {}, **fields)
      post('/decide', DecideRequest.new(fields), extra_body, DecideResponse)
    end

    # Extracts one object with fields from a text. Returns an ExtractResponse.
    def extract(extra_body: {}, **fields)
      post('/extract', ExtractRequest.new(fields), extra_body, ExtractResponse)
    end

    # Answers questions with the probability of every option, in the format of OpenAI's Decisions API. Returns a
    # DecisionsResponse.
    def decisions(extra_body: {}, **fields)
      post('/v1/decisions', DecisionsRequest.new(fields), extra_body, DecisionsResponse)
    end

    # Answers named questions with the probability of every option, in the format of System One. Returns a
    # SystemOneResponse.
    def system_one(extra_body: {}, **fields)
      post('/v1/systemone', SystemOneRequest.new(fields), extra_body, SystemOneResponse)
    end

    # Ranks documents by the probability that each is relevant to a query. Returns a RerankResponse.
    def rerank(extra_body: {}, **fields)
      post('/v1/rerank', RerankRequest.new(fields), extra_body, RerankResponse)
    end

    private

    # Returns an environment variable; an empty one counts as not set.
    def from_environment(name)
      value = ENV.fetch(name, '')
      value.empty? ? nil : value
    end

    def post(path, request, extra_body, type)
      body = JSON.generate(request.to_hash.merge(extra_body))
      (0..).each do |attempt|
        response = send_once(URI(@base_url + path), body)
        return parse(response, type) if response.is_a?(Net::HTTPSuccess)

        wait = wait_before_retry(response, attempt)
        raise StatusError.for(response) if wait.nil? || attempt >= @max_retries

        sleep(wait)
      end
    end

    # Sends the request once. The timeout applies to the whole attempt, not to each read.
    def send_once(uri, body)
      Timeout.timeout(@timeout, Net::ReadTimeout) do
        http = { use_ssl: uri.scheme == 'https', open_timeout: @timeout, read_timeout: @timeout, max_retries: 0 }
        Net::HTTP.start(uri.host, uri.port, **http) { |connection| connection.post(uri.path, body, headers) }
      end
    rescue Net::OpenTimeout, Net::ReadTimeout, Net::WriteTimeout
      raise TimeoutError, "No answer from #{@base_url} in time. Raise timeout, or send less at once."
    rescue SystemCallError, SocketError, IOError, OpenSSL::SSL::SSLError, Net::ProtocolError => e
      raise ConnectionError, "No answer from #{@base_url}: #{e.message}. Does the server run?"
    end

    def headers
      {
        'authorization' => "Bearer #{@api_key}",
        'content-type' => 'application/json',
        'user-agent' => "assay-ruby/#{CONTRACT_VERSION}"
      }
    end

    # Parses a response. The generated code raises many kinds of errors for unexpected JSON.
    def parse(response, type)
      type.build_from_hash(JSON.parse(response.body.force_encoding(Encoding::UTF_8))) || raise(TypeError, 'it is no object')
    rescue StandardError => e
      raise ConnectionError, "What came from #{@base_url} is not Assay's: #{e.message[0, 200]}. Is base_url right?"
    end

    # Returns the seconds to wait before a retry, or nil for no retry: the time in +Retry-After+ after 429,
    # an exponential backoff after 5xx, and no retry after any other status. +attempt+ counts from 0.
    def wait_before_retry(response, attempt)
      status = response.code.to_i
      return nil if status != 429 && status < 500

      named = StatusError.retry_after(response)
      return named <= LONGEST_WAIT ? named : nil if named

      [LONGEST_BACKOFF, FIRST_BACKOFF * (2**attempt)].min * rand(0.75..1.0)
    end
  end
end
