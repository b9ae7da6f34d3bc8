using System;

namespace Assay.Client;

/// <summary>What every call of the client throws, in one of its kinds.</summary>
public class AssayException : Exception
{
    internal AssayException(string message, Exception? cause = null)
        : base(message, cause)
    {
    }
}

/// <summary>No answer came: the server cannot be reached, the connection broke, or what came is not Assay's.</summary>
public class AssayConnectionException : AssayException
{
    internal AssayConnectionException(string message, Exception cause)
        : base(message, cause)
    {
    }
}

/// <summary>No answer came within the time-out. Not sent again: the work may have been done.</summary>
public sealed class AssayTimeoutException : AssayConnectionException
{
    internal AssayTimeoutException(string message, Exception cause)
        : base(message, cause)
    {
    }
}
