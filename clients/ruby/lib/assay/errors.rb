# frozen_string_literal: true

require 'json'

module Assay
  # Base of all errors of this package.
  class Error < StandardError; end

  # No answer came: the server cannot be reached, the connection broke, or what came is not Assay's.
  class ConnectionError < Error; end

  # No answer came within the time-out. Not sent again: the work may have been done.
  class TimeoutError < ConnectionError; end

  # The server answered with an error. Branch on +code+; the message is for logs, not for end users.
  class StatusError < Error
    # HTTP status.
    attr_reader :status
    # Family of the error, such as +invalid_request_error+; nil where a proxy answered and not Assay.
    attr_reader :type
    # What happened, such as +invalid_value+; nil where a proxy answered and not Assay.
    attr_reader :code
    # Path of the field that is wrong, such as +tasks[2].options[0]+.
    attr_reader :param
    # Finds the request in the server's log.
    attr_reader :request_id
    # Seconds to wait, where the server named them.
    attr_reader :retry_after

    # The error for a response that is not a success (a Net::HTTPResponse).
    def self.for(response)
      status = response.code.to_i
      kind = BY_STATUS.fetch(status) { status >= 500 ? ServerError : StatusError }
      kind.new(response)
    end

    def initialize(response)
      details = StatusError.details(response.body)
      @status = response.code.to_i
      @type, @code, @param = details.values_at('type', 'code', 'param')
      @request_id = response['x-request-id']
      @retry_after = StatusError.retry_after(response)
      said = details['message'] || response.body.to_s[0, 200]
      super("#{@status} #{@code}: #{said} (request #{@request_id})")
    end

    # Seconds of the +Retry-After+ header; nil where there is none, or none that is a number.
    def self.retry_after(response)
      seconds = Float(response['retry-after'], exception: false)
      seconds && [seconds, 0.0].max
    end

    def self.details(text)
      body = JSON.parse(text.to_s)
      details = body.is_a?(Hash) ? body['error'] : nil
      details.is_a?(Hash) ? details : {}
    rescue JSON::ParserError
      {}
    end
  end

  # 400: the request is malformed.
  class BadRequestError < StatusError; end
  # 401: no key, or one that is not known.
  class AuthenticationError < StatusError; end
  # 403: the key may not use this model.
  class PermissionDeniedError < StatusError; end
  # 422: a value is not valid.
  class UnprocessableEntityError < StatusError; end
  # 429: too many requests, also after the retries; wait +retry_after+ seconds.
  class RateLimitError < StatusError; end
  # 5xx: the server failed, also after the retries.
  class ServerError < StatusError; end

  class StatusError
    BY_STATUS = {
      400 => BadRequestError,
      401 => AuthenticationError,
      403 => PermissionDeniedError,
      422 => UnprocessableEntityError,
      429 => RateLimitError
    }.freeze
    private_constant :BY_STATUS
  end
end
