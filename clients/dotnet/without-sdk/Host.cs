using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;

/// <summary>
/// Runs as a startup hook inside the .NET runtime of another program, before that program begins (dotnet/runtime,
/// "host-startup-hook.md"). ASSAY_HOST has one argument on each line: "csc" and the arguments of the C# compiler, or
/// "run", a program's .dll and its arguments. Written in C# 5, for mcs.
/// </summary>
internal static class StartupHook
{
    public static void Initialize()
    {
        string[] args = Environment.GetEnvironmentVariable("ASSAY_HOST").Split('\n');
        // Programs that this one starts must not run the hook.
        Environment.SetEnvironmentVariable("DOTNET_STARTUP_HOOKS", null);
        try
        {
            Environment.Exit(args[0] == "csc" ? Compile(args.Skip(1).ToArray()) : Run(args[1], args.Skip(2).ToArray()));
        }
        catch (Exception error)
        {
            Console.Error.WriteLine(error);
            Environment.Exit(70);
        }
    }

    private static int Run(string program, string[] args)
    {
        MethodInfo main = Assembly.LoadFrom(program).EntryPoint;
        object code = main.Invoke(null, main.GetParameters().Length == 0 ? null : new object[] { args });
        return code is int ? (int)code : 0;
    }

    /// <summary>Compiles like csc, whose argument parser it uses. Roslyn is in the folder ASSAY_ROSLYN.</summary>
    private static int Compile(string[] args)
    {
        string roslyn = Environment.GetEnvironmentVariable("ASSAY_ROSLYN");
        Assembly core = Assembly.LoadFrom(Path.Combine(roslyn, "Microsoft.CodeAnalysis.dll"));
        Assembly csharp = Assembly.LoadFrom(Path.Combine(roslyn, "Microsoft.CodeAnalysis.CSharp.dll"));
        Func<string, Type> type = name => core.GetType("Microsoft.CodeAnalysis." + name) ?? csharp.GetType("Microsoft.CodeAnalysis.CSharp." + name);

        dynamic parser = type("CSharpCommandLineParser").GetProperty("Default").GetValue(null);
        dynamic options = parser.Parse(args, Directory.GetCurrentDirectory(), null);
        List<object> trees = new List<object>();
        foreach (dynamic file in options.SourceFiles)
        {
            string path = file.Path;
            trees.Add(Call(type("CSharpSyntaxTree"), "ParseText", File.ReadAllText(path), options.ParseOptions, path));
        }

        List<object> references = new List<object>();
        foreach (dynamic reference in options.MetadataReferences)
        {
            references.Add(Call(type("MetadataReference"), "CreateFromFile", reference.Reference, reference.Properties));
        }

        string output = options.OutputFileName;
        dynamic compilation = Call(
            type("CSharpCompilation"),
            "Create",
            Path.GetFileNameWithoutExtension(output),
            ArrayOf(type("SyntaxTree"), trees),
            ArrayOf(type("MetadataReference"), references),
            options.CompilationOptions);
        using (FileStream stream = File.Create(Path.Combine((string)options.OutputDirectory, output)))
        using (MemoryStream documentation = new MemoryStream())
        {
            dynamic result = compilation.Emit(stream, null, documentation);
            foreach (dynamic diagnostic in result.Diagnostics)
            {
                if (diagnostic.Severity.ToString() != "Hidden")
                {
                    Console.Error.WriteLine(diagnostic.ToString());
                }
            }

            return result.Success ? 0 : 1;
        }
    }

    /// <summary>Calls the static method of this name, with default values for further parameters.</summary>
    private static object Call(Type type, string name, params object[] args)
    {
        MethodInfo method = type.GetMethods(BindingFlags.Public | BindingFlags.Static)
            .First(one => one.Name == name && Fits(one.GetParameters(), args));
        object[] all = method.GetParameters().Select((one, i) => i < args.Length ? args[i] : Default(one)).ToArray();
        return method.Invoke(null, all);
    }

    private static bool Fits(ParameterInfo[] parameters, object[] args)
    {
        return parameters.Length >= args.Length
            && args.Select((one, i) => parameters[i].ParameterType.IsInstanceOfType(one)).All(fits => fits)
            && parameters.Skip(args.Length).All(one => one.IsOptional);
    }

    private static object Default(ParameterInfo parameter)
    {
        Type type = parameter.ParameterType;
        return parameter.DefaultValue == null && type.IsValueType ? Activator.CreateInstance(type) : parameter.DefaultValue;
    }

    private static Array ArrayOf(Type type, List<object> items)
    {
        Array array = Array.CreateInstance(type, items.Count);
        for (int i = 0; i < items.Count; i++)
        {
            array.SetValue(items[i], i);
        }

        return array;
    }
}
