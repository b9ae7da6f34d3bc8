# frozen_string_literal: true

require 'json'

module Assay
  # Base class of all errors of this package.
  class Error < StandardError; end

  # Raised if there is no answer: the server cannot be reached, the connection broke, or the response is not Assay's.
  class ConnectionError < Error; end

  # Raised if no answer came within the timeout. The request is not sent again, because the server may have done it.
  class TimeoutError < ConnectionError; end

  # Raised for an error response of the server. Branch on +code+; the message is for logs, not for end users.
  class StatusError < Error
    # HTTP status.
    attr_reader :status
    # Type of the error, such as +invalid_request_error+; nil if a proxy answered and not Assay.
    attr_reader :type
    # Code of the error, such as +invalid_value+; nil if a proxy answered and not Assay.
    attr_reader :code
    # Path of the invalid field, such as +tasks[2].options[0]+.
    attr_reader :param
    # Identifies the request in the server's log.
    attr_reader :request_id
    # Seconds to wait before a retry, if the server stated them; else nil.
    attr_reader :retry_after

    # Returns the error for a response (Net::HTTPResponse) that is not a success.
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

    # Returns the seconds of the +Retry-After+ header; nil if there is none, or if it is not a number.
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

  # Raised for status 400: the request is malformed.
  class BadRequestError < StatusError; end
  # Raised for status 401: the API key is missing or unknown.
  class AuthenticationError < StatusError; end
  # Raised for status 403: the key may not use this model.
  class PermissionDeniedError < StatusError; end
  # Raised for status 422: a value is invalid.
  class UnprocessableEntityError < StatusError; end
  # Raised for status 429 after all retries: too many requests. Wait +retry_after+ seconds.
  class RateLimitError < StatusError; end
  # Raised for status 5xx after all retries: the server failed.
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
