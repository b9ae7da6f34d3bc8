using System;

namespace Assay.Client;

/// <summary>Base class of all exceptions that the client's calls throw.</summary>
public class AssayException : Exception
{
    internal AssayException(string message, Exception? cause = null)
        : base(message, cause)
    {
    }
}

/// <summary>Thrown if there is no answer: the server cannot be reached, the connection broke, or the response is
/// not Assay's.</summary>
public class AssayConnectionException : AssayException
{
    internal AssayConnectionException(string message, Exception cause)
        : base(message, cause)
    {
    }
}

/// <summary>Thrown if no answer came within the timeout. The request is not sent again, because the server may
/// have done it.</summary>
public sealed class AssayTimeoutException : AssayConnectionException
{
    internal AssayTimeoutException(string message, Exception cause)
        : base(message, cause)
    {
    }
}
