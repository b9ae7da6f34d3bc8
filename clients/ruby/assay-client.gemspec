# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = 'assay-client'
  spec.version = '0.5.0'
  spec.summary = 'Many small judgement tasks about one shared context in one request: the client of Assay.'
  spec.authors = ['Assay']
  spec.license = 'Apache-2.0'
  spec.required_ruby_version = '>= 3.0'
  spec.files = Dir['lib/**/*.rb', 'examples/*.rb'] + %w[README.md LICENSE]
  spec.metadata = { 'rubygems_mfa_required' => 'true' }
end
