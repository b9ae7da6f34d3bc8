using System;
using System.Threading.Tasks;

namespace Assay.Client.Tests;

/// <summary>Assertions for the tests.</summary>
internal static class Check
{
    internal static void That(bool holds, string otherwise)
    {
        if (!holds)
        {
            throw new InvalidOperationException(otherwise);
        }
    }

    internal static void Equal(object? expected, object? found, string what) =>
        That(Equals(expected, found), $"{what} is {found ?? "null"}, not {expected ?? "null"}");

    /// <summary>Asserts that <paramref name="call"/> throws an exception of exactly this type, and returns
    /// it.</summary>
    internal static async Task<Exception> Throws(Type type, Func<Task> call)
    {
        try
        {
            await call();
        }
        catch (Exception error)
        {
            That(error.GetType() == type, $"{error.GetType().Name} was thrown, not {type.Name}: {error}");
            return error;
        }

        throw new InvalidOperationException($"Nothing was thrown, {type.Name} was expected");
    }
}
