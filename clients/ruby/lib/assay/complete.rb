# frozen_string_literal: true

module Assay
  # Raised for an answer that was cut. +response+ has the part that was generated; +finish_reason+ is +length+ or
  # +content_filter+.
  class IncompleteError < Error
    WHY = {
      'length' => 'The output limit was reached: raise max_output_tokens and send the request again.',
      'content_filter' => 'The answer was filtered: sending the same input again does not help.'
    }.freeze

    attr_reader :finish_reason, :response

    def initialize(response)
      @response = response
      @finish_reason = response.choices.first.finish_reason
      super("#{WHY.fetch(@finish_reason)} (request #{response.id})")
    end
  end

  # Returns the response; raises IncompleteError if its +finish_reason+ says that the answer was cut.
  def self.ensure_complete(response)
    raise IncompleteError, response if IncompleteError::WHY.key?(response.choices.first&.finish_reason)

    response
  end
end
