# frozen_string_literal: true

require 'set'
require 'time'
require 'assay/contract'
require 'assay/api_model_base'
Dir[File.join(__dir__, 'assay', 'models', '*.rb')].sort.each { |file| require file }
require 'assay/errors'
require 'assay/complete'
require 'assay/media'
require 'assay/client'

# Client of Assay: many small judgement tasks about one shared context in one request. See Assay::Client.
module Assay
end
